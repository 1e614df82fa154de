//! Statements about `user_account`.

use sqlx::PgExecutor;

use super::impossible;
use crate::Error;
use crate::ids::UserId;
use crate::users::{Role, User};

/// An account with what its password is checked against.
pub(crate) struct Account {
    pub(crate) user: User,
    pub(crate) password_hash: Option<String>,
}

fn user(id: i64, username: String, role: &str) -> Result<User, Error> {
    Ok(User {
        user_id: UserId::new(id).ok_or_else(|| impossible("user_account", "user_id", id))?,
        username,
        role: role
            .parse()
            .map_err(|()| impossible("user_account", "role", id))?,
    })
}

/// A new account; none when the name is taken.
pub(crate) async fn account_insert(
    on: impl PgExecutor<'_>,
    username: &str,
    key: &str,
    password_hash: &str,
) -> Result<Option<User>, Error> {
    let row = sqlx::query!(
        "insert into user_account (username, username_key, password_hash) values ($1, $2, $3)
         on conflict (username_key) do nothing returning user_id",
        username,
        key,
        password_hash
    )
    .fetch_optional(on)
    .await?;
    row.map(|row| user(row.user_id, username.to_owned(), Role::Buyer.as_str()))
        .transpose()
}

/// An admin's account, made or changed.
pub(crate) async fn account_upsert_admin(
    on: impl PgExecutor<'_>,
    username: &str,
    key: &str,
    password_hash: &str,
) -> Result<User, Error> {
    let row = sqlx::query!(
        "insert into user_account (username, username_key, password_hash, role) values ($1, $2, $3, 'admin')
         on conflict (username_key) do update set password_hash = excluded.password_hash, role = 'admin'
         returning user_id, username, role",
        username,
        key,
        password_hash
    )
    .fetch_one(on)
    .await?;
    user(row.user_id, row.username, &row.role)
}

/// Accounts without a password, named `<stem>-1` and so on.
pub(crate) async fn account_insert_many(
    on: impl PgExecutor<'_>,
    stem: &str,
    count: i32,
) -> Result<Vec<User>, Error> {
    let rows = sqlx::query!(
        r#"insert into user_account (username, username_key)
         select $1 || '-' || n, $1 || '-' || n from generate_series(1, $2::integer) as n
         returning user_id, username, role"#,
        stem,
        count
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| user(row.user_id, row.username, &row.role))
        .collect()
}

/// The account of this folded name.
pub(crate) async fn account_by_name(
    on: impl PgExecutor<'_>,
    key: &str,
) -> Result<Option<Account>, Error> {
    let row = sqlx::query!(
        "select user_id, username, role, password_hash from user_account where username_key = $1",
        key
    )
    .fetch_optional(on)
    .await?;
    row.map(|row| {
        Ok(Account {
            user: user(row.user_id, row.username, &row.role)?,
            password_hash: row.password_hash,
        })
    })
    .transpose()
}

/// The user with this id.
pub(crate) async fn account_by_id(
    on: impl PgExecutor<'_>,
    id: UserId,
) -> Result<Option<User>, Error> {
    let row = sqlx::query!(
        "select user_id, username, role from user_account where user_id = $1",
        id.get()
    )
    .fetch_optional(on)
    .await?;
    row.map(|row| user(row.user_id, row.username, &row.role))
        .transpose()
}
