//! A PostgreSQL database for one test.

use sqlx::{Connection, PgConnection, PgPool};

use super::{services, unique};

/// A database that only one test uses.
pub struct Database {
    pub url: String,
    name: String,
    pool: PgPool,
}

impl Database {
    /// Creates an empty one.
    pub async fn create() -> Self {
        let base = &services().0;
        let name = format!("test_{}", unique());
        let mut connection = PgConnection::connect(base)
            .await
            .expect("PostgreSQL answers");
        // Databases are copied from a template, and two copies at once refuse each other.
        sqlx::query("select pg_advisory_lock(7355608)")
            .execute(&mut connection)
            .await
            .unwrap();
        sqlx::query(&format!("create database {name}"))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        let url = renamed(base, &name);
        let pool = PgPool::connect_lazy(&url).unwrap();
        Self { url, name, pool }
    }

    /// Orders of a sale.
    pub async fn orders(&self, sale: &str) -> i64 {
        sqlx::query_scalar(
            "select count(*) from voucher_order where voucher_id = $1 and state = 'confirmed'",
        )
        .bind(sale.parse::<i64>().unwrap())
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Different buyers among them.
    pub async fn distinct_buyers(&self, sale: &str) -> i64 {
        sqlx::query_scalar("select count(distinct user_id) from voucher_order where voucher_id = $1 and state = 'confirmed'")
            .bind(sale.parse::<i64>().unwrap())
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// Makes an account something else than a buyer.
    pub async fn gives_role(&self, username: &str, role: &str) {
        sqlx::query("update user_account set role = $2 where username = $1")
            .bind(username)
            .bind(role)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// Keeps everybody from writing orders of a sale until the result is dropped.
    pub async fn held(&self, sale: &str) -> sqlx::Transaction<'static, sqlx::Postgres> {
        let mut transaction = self.pool.begin().await.unwrap();
        sqlx::query("select 1 from voucher where voucher_id = $1 for update")
            .bind(sale.parse::<i64>().unwrap())
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction
    }

    /// Whether somebody waits for a lock, as a consumer does while the sale is held.
    pub async fn somebody_waits(&self) -> bool {
        sqlx::query_scalar(
            "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')",
        )
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Deletes it, whoever is still connected.
    pub async fn remove(self) {
        self.pool.close().await;
        let mut connection = PgConnection::connect(&services().0).await.unwrap();
        sqlx::query(&format!("drop database {} with (force)", self.name))
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

/// The URL with another database, its query kept.
fn renamed(url: &str, name: &str) -> String {
    let (front, query) = url
        .split_once('?')
        .map_or((url, None), |(front, query)| (front, Some(query)));
    let end = front
        .rfind('/')
        .filter(|at| *at > "postgres://".len())
        .unwrap_or(front.len());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &front[..end])
}
