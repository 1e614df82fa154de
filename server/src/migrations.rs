//! Says at start which migrations PostgreSQL lacks. Nothing is migrated here:
//! that is `seckill-server migrate`, run once however many processes start.

use sqlx::{Connection, PgConnection, migrate::Migrator};
use tracing::warn;

static KNOWN: Migrator = sqlx::migrate!("../migrations");

/// One warning that names what is missing, if anything is.
pub async fn warn_if_missing(database_url: &str) {
    match missing(database_url).await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => warn!(
            missing = missing.join(", "),
            "PostgreSQL lacks migrations: run `seckill-server migrate`"
        ),
        Err(error) => warn!(%error, "cannot tell which migrations PostgreSQL has"),
    }
}

async fn missing(database_url: &str) -> Result<Vec<String>, sqlx::Error> {
    let mut connection = PgConnection::connect(database_url).await?;
    let table: Option<String> = sqlx::query_scalar("select to_regclass('_sqlx_migrations')::text")
        .fetch_one(&mut connection)
        .await?;
    let applied: Vec<i64> = match table {
        Some(_) => {
            sqlx::query_scalar("select version from _sqlx_migrations where success")
                .fetch_all(&mut connection)
                .await?
        }
        None => Vec::new(),
    };
    connection.close().await?;
    let missing = KNOWN
        .iter()
        .filter(|migration| !applied.contains(&migration.version));
    Ok(missing
        .map(|migration| format!("{:04} {}", migration.version, migration.description))
        .collect())
}
