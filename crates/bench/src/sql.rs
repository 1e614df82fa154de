//! Every statement of this program but the bare one: the auditor's, which only read, and those
//! that make, fill and drop a database of a run's own.

use futures::TryStreamExt;
use seckill::{OrderId, UserId, VoucherId};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Error, PgConnection, PgPool};

/// An order's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub order: OrderId,
    /// Whose it is.
    pub user: UserId,
    /// What was bought.
    pub voucher: VoucherId,
    /// Confirmed; otherwise failed.
    pub live: bool,
}

/// A voucher's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// Which.
    pub voucher: VoucherId,
    /// Units put on sale.
    pub total: i64,
    /// Units left, as PostgreSQL counts them.
    pub left: i64,
    /// Its end has passed: Redis may have released it.
    pub ended: bool,
}

/// From the first admission to the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Rows, failed ones too.
    pub rows: i64,
    /// The first admission, by Redis' clock, to the last row, by the server's.
    pub ms: i64,
}

/// A row with an id that is none: nothing here may write it.
fn impossible(what: &str) -> Error {
    Error::Decode(format!("{what} is not positive").into())
}

/// Connections for the auditor; made when needed.
///
/// # Errors
/// When the URL is none.
pub fn pool(url: &str) -> Result<PgPool, Error> {
    PgPoolOptions::new().max_connections(2).connect_lazy(url)
}

/// Every order of these vouchers.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn orders(pool: &PgPool, vouchers: &[i64]) -> Result<Vec<Row>, Error> {
    let statement = "select order_id, user_id, voucher_id, state = 'confirmed' from voucher_order where voucher_id = any($1)";
    let mut rows = sqlx::query_as::<_, (i64, i64, i64, bool)>(statement)
        .bind(vouchers)
        .fetch(pool);
    let mut found = Vec::new();
    // Row by row: a million of them are held once, and small.
    while let Some((order, user, voucher, live)) = rows.try_next().await? {
        found.push(Row {
            order: OrderId::new(order).ok_or_else(|| impossible("an order's id"))?,
            user: UserId::new(user).ok_or_else(|| impossible("a user's id"))?,
            voucher: VoucherId::new(voucher).ok_or_else(|| impossible("a voucher's id"))?,
            live,
        });
    }
    Ok(found)
}

/// The stock of these vouchers.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn stocks(pool: &PgPool, vouchers: &[i64]) -> Result<Vec<Stock>, Error> {
    let statement = "select voucher_id, total, stock, end_ms < extract(epoch from now()) * 1000
                     from voucher where voucher_id = any($1) order by voucher_id";
    let rows: Vec<(i64, i64, i64, bool)> = sqlx::query_as(statement)
        .bind(vouchers)
        .fetch_all(pool)
        .await?;
    rows.into_iter()
        .map(|(voucher, total, left, ended)| {
            let voucher = VoucherId::new(voucher).ok_or_else(|| impossible("a voucher's id"))?;
            Ok(Stock {
                voucher,
                total,
                left,
                ended,
            })
        })
        .collect()
}

/// How many orders a voucher has, and in what time they were persisted.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn span(pool: &PgPool, voucher: VoucherId) -> Result<Span, Error> {
    let statement = "select count(*), coalesce(max(settled_ms) - min(admitted_ms), 0) from voucher_order where voucher_id = $1";
    let (rows, ms) = sqlx::query_as(statement)
        .bind(voucher.get())
        .fetch_one(pool)
        .await?;
    Ok(Span { rows, ms })
}

/// Units of a voucher that its rows have taken.
///
/// # Errors
/// When PostgreSQL can't be asked or does not know it.
pub async fn sold(pool: &PgPool, voucher: i64) -> Result<i64, Error> {
    sqlx::query_scalar("select total - stock from voucher where voucher_id = $1")
        .bind(voucher)
        .fetch_one(pool)
        .await
}

/// Any administrator.
///
/// # Errors
/// When PostgreSQL can't be asked or has none.
pub async fn any_admin(pool: &PgPool) -> Result<UserId, Error> {
    let statement = "select user_id from user_account where role = 'admin' limit 1";
    let id: i64 = sqlx::query_scalar(statement).fetch_one(pool).await?;
    UserId::new(id).ok_or_else(|| impossible("a user's id"))
}

/// A voucher for a program that is not the product, which therefore leaves it alone.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn bare_voucher(pool: &PgPool, stock: i64) -> Result<i64, Error> {
    let statement =
        "insert into voucher (lane, title, subtitle, rules, pay_cents, value_cents, total, stock,
                       begin_ms, end_ms, released)
                     values (0, 'bare', '', '', 1, 2, $1, $1, 0, 1, true) returning voucher_id";
    sqlx::query_scalar(statement)
        .bind(stock)
        .fetch_one(pool)
        .await
}

/// Has the product leave a voucher alone whose keys are gone.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn release(pool: &PgPool, voucher: VoucherId) -> Result<(), Error> {
    sqlx::query("update voucher set released = true, end_ms = begin_ms + 1 where voucher_id = $1")
        .bind(voucher.get())
        .execute(pool)
        .await?;
    Ok(())
}

/// Makes a database on the server of `url`. The name is this program's own.
///
/// # Errors
/// When PostgreSQL can't be asked or does not allow it.
pub async fn database_create(url: &str, name: &str) -> Result<(), Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query(&format!("create database {name}"))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

/// Drops a database that was made here, whoever is still connected.
///
/// # Errors
/// When PostgreSQL can't be asked.
pub async fn database_drop(url: &str, name: &str) -> Result<(), Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query(&format!("drop database if exists {name} with (force)"))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

/// The URL of another database on the same server.
pub fn database_url(url: &str, name: &str) -> String {
    let (base, query) = url
        .split_once('?')
        .map_or((url, None), |(base, query)| (base, Some(query)));
    let host = base.find("://").map_or(0, |at| at + 3);
    let end = base[host..].find('/').map_or(base.len(), |at| host + at);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &base[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_has_the_same_server_and_options() {
        for (url, other) in [
            ("postgres://u:p@h:1/shop", "postgres://u:p@h:1/b"),
            ("postgres://h", "postgres://h/b"),
            (
                "postgres://%2Frun%2Fpg/shop?sslmode=off",
                "postgres://%2Frun%2Fpg/b?sslmode=off",
            ),
            (
                "postgres:///shop?host=/run/pg",
                "postgres:///b?host=/run/pg",
            ),
        ] {
            assert_eq!(database_url(url, "b"), other);
        }
    }
}
