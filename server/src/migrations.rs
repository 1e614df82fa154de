//! Says at start which migrations PostgreSQL lacks. Nothing is migrated here:
//! that is `seckill-server migrate`, run once however many processes start.

use seckill::Shop;
use tracing::warn;

/// One warning that names what is missing, if anything is.
pub async fn warn_if_missing(shop: &Shop) {
    match shop.missing_migrations().await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => warn!(
            missing = missing.join(", "),
            "PostgreSQL lacks migrations: run `seckill-server migrate`"
        ),
        Err(error) => warn!(%error, "cannot tell which migrations PostgreSQL has"),
    }
}
