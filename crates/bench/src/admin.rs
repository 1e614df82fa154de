//! What the administrator does over the web: creates sales, looks at them, and reads the clock.

use std::time::{Duration, Instant};

use http::HeaderValue;
use seckill::VoucherId;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Answer, Call, Connection};
use crate::site::SiteError;

/// How long a sale may take until it is open.
pub(crate) const OPEN: Duration = Duration::from_secs(30);

/// A sale as the API tells it.
#[derive(Debug, Clone, Deserialize)]
pub struct Sale {
    /// Which.
    pub voucher_id: VoucherId,
    /// Units left; exact for admins.
    pub stock: i64,
    /// When it opens.
    pub begin_ms: i64,
    /// When it closes.
    pub end_ms: i64,
    /// How it stands.
    pub state: String,
}

#[derive(Deserialize)]
struct Now {
    now_ms: i64,
}

/// A signed-in administrator.
pub struct Admin {
    /// The connection that the calls share.
    pub(crate) connection: Connection,
    /// The session's cookie.
    pub(crate) cookie: HeaderValue,
}

impl Admin {
    /// Redis' clock, by which sales open and close.
    ///
    /// # Errors
    /// When the site does not tell it.
    pub async fn now_ms(&mut self) -> Result<i64, SiteError> {
        let now: Now = told(&mut self.connection, "/api/clock", &Call::get("/api/clock")).await?;
        Ok(now.now_ms)
    }

    /// Creates a sale of so many vouchers, open from one time to another.
    ///
    /// # Errors
    /// When the site refuses it.
    pub async fn create_sale(
        &mut self,
        stock: i64,
        begin_ms: i64,
        end_ms: i64,
    ) -> Result<Sale, SiteError> {
        let time = |ms| {
            jiff::Timestamp::from_millisecond(ms)
                .map(|time| time.to_string())
                .unwrap_or_default()
        };
        let fields = [
            ("title", "Load test"),
            ("subtitle", "Made by seckill-bench"),
            ("rules", ""),
            ("pay_cents", "4900"),
            ("value_cents", "9900"),
            ("stock", &stock.to_string()),
            ("begin", &time(begin_ms)),
            ("end", &time(end_ms)),
        ];
        let call = Call::post("/api/admin/create_voucher", &fields).by(&self.cookie);
        told(&mut self.connection, "/api/admin/create_voucher", &call).await
    }

    /// A sale as an administrator sees it, its stock exact.
    ///
    /// # Errors
    /// When the site does not tell it.
    pub async fn sale(&mut self, voucher: VoucherId) -> Result<Sale, SiteError> {
        let call = Call::get(&format!("/api/sale?voucher_id={voucher}")).by(&self.cookie);
        told(&mut self.connection, "/api/sale", &call).await
    }

    /// Waits until a sale is open.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn wait_until_open(&mut self, voucher: VoucherId) -> Result<(), SiteError> {
        let begun = Instant::now();
        loop {
            let state = self.sale(voucher).await?.state;
            if state == "open" {
                return Ok(());
            }
            if begun.elapsed() > OPEN {
                return Err(SiteError::NotOpen(state));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until Redis' clock has reached this time.
    ///
    /// # Errors
    /// When the site does not tell the time.
    pub async fn wait_until(&mut self, ms: i64) -> Result<(), SiteError> {
        loop {
            let left = ms - self.now_ms().await?;
            let Ok(left @ 1..) = u64::try_from(left) else {
                return Ok(());
            };
            tokio::time::sleep(Duration::from_millis(left.min(500))).await;
        }
    }
}

/// Sends a call whose refusal ends the run.
pub(crate) async fn sent(
    connection: &mut Connection,
    what: &'static str,
    call: &Call,
) -> Result<Answer, SiteError> {
    let answer = connection
        .send(call)
        .await
        .map_err(|error| SiteError::Lost(what, error))?;
    if answer.status.is_success() {
        Ok(answer)
    } else {
        Err(refused(what, &answer))
    }
}

/// The same, with the answer read.
pub(crate) async fn told<T: DeserializeOwned>(
    connection: &mut Connection,
    what: &'static str,
    call: &Call,
) -> Result<T, SiteError> {
    let answer = sent(connection, what, call).await?;
    serde_json::from_slice(&answer.body).map_err(|_| refused(what, &answer))
}

/// What the site said instead.
pub(crate) fn refused(what: &'static str, answer: &Answer) -> SiteError {
    let said = String::from_utf8_lossy(&answer.body)
        .chars()
        .take(200)
        .collect();
    SiteError::Refused {
        what,
        status: answer.status.as_u16(),
        said,
    }
}
