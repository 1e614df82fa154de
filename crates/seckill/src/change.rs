//! Changes of a running sale: stock added, paused, resumed, ended.
//!
//! A change is a row with the next `rev`, written with what it changes in one transaction;
//! `apply.lua` applies revs strictly in order, each once. What a crash leaves unapplied is
//! applied by the reconciler.

use std::str::FromStr;

use crate::ids::{UserId, VoucherId};
use crate::redis::{list, number};
use crate::scripts::APPLY;
use crate::store::voucher::{self, Voucher};
use crate::store::watch::audit_insert;
use crate::vouchers::{MAX_STOCK, Sale};
use crate::{Error, Shop};

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Stock,
    Pause,
    Resume,
    End,
}

impl ChangeKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::End => "end",
        }
    }
}

impl FromStr for ChangeKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Stock, Self::Pause, Self::Resume, Self::End]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(())
    }
}

/// A change and its value: units added, or the new end in milliseconds; otherwise 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) value: i64,
}

/// The longest name that a caller may give its request.
const MAX_REQUEST_ID: usize = 100;

impl Shop {
    /// Adds units to a sale. A repeat with the same `request_id` changes nothing.
    ///
    /// # Errors
    /// `Invalid` for an amount below 1 or a total above 10 million; `Conflict` when the
    /// request id was used for another amount, or the sale is over.
    pub async fn add_stock(
        &self,
        by: UserId,
        id: VoucherId,
        amount: i64,
        request_id: Option<&str>,
    ) -> Result<Sale, Error> {
        if !(1..=MAX_STOCK).contains(&amount) {
            return Err(Error::Invalid(format!(
                "amount: a whole number from 1 to {MAX_STOCK}"
            )));
        }
        let request_id = request_id.map(str::trim).filter(|text| !text.is_empty());
        if request_id.is_some_and(|text| text.len() > MAX_REQUEST_ID || text.contains('\0')) {
            return Err(Error::Invalid(format!(
                "request_id: at most {MAX_REQUEST_ID} bytes"
            )));
        }
        let kind = ChangeKind::Stock;
        self.change(
            by,
            id,
            Change {
                kind,
                value: amount,
            },
            request_id.map(str::to_owned),
        )
        .await
    }

    /// Stops a sale until it is resumed.
    ///
    /// # Errors
    /// `Conflict` when the sale is over; `NotFound`, `Unavailable`.
    pub async fn pause(&self, by: UserId, id: VoucherId) -> Result<Sale, Error> {
        let kind = ChangeKind::Pause;
        self.change(by, id, Change { kind, value: 0 }, None).await
    }

    /// Lets a paused sale sell again.
    ///
    /// # Errors
    /// `Conflict` when the sale is over, or Redis does not hold it yet; `NotFound`, `Unavailable`.
    pub async fn resume(&self, by: UserId, id: VoucherId) -> Result<Sale, Error> {
        let known = self.voucher(id).await?;
        let live = self.live(&known).await?.sale;
        if !live.is_some_and(|live| live.loaded()) {
            return Err(Error::Conflict(
                "the sale is not loaded yet; try again when it is".into(),
            ));
        }
        let kind = ChangeKind::Resume;
        self.change(by, id, Change { kind, value: 0 }, None).await
    }

    /// Ends a sale now, for good.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`.
    pub async fn end(&self, by: UserId, id: VoucherId) -> Result<Sale, Error> {
        let known = self.voucher(id).await?;
        let value = self.live(&known).await?.now_ms;
        let kind = ChangeKind::End;
        self.change(by, id, Change { kind, value }, None).await
    }

    async fn change(
        &self,
        by: UserId,
        id: VoucherId,
        change: Change,
        request_id: Option<String>,
    ) -> Result<Sale, Error> {
        let shop = self.clone();
        self.detached(async move {
            let now_ms = shop.clock(Some(id)).await?;
            let mut tx = shop.pool().begin().await?;
            let row = voucher::voucher_lock(&mut *tx, id).await?.ok_or(Error::NotFound)?;
            if let Some(request_id) = &request_id
                && let Some(made) = voucher::change_by_request(&mut *tx, id, request_id).await?
            {
                tx.rollback().await?;
                if made != change {
                    return Err(Error::Conflict("this request id was used for another change".into()));
                }
            } else if let Some(change) = due(&row, change, now_ms)? {
                let rev = voucher::change_insert(&mut tx, id, change, request_id.as_deref(), by).await?;
                let (subject, detail) = (format!("voucher {id}"), change.value.to_string());
                audit_insert(&mut *tx, shop.now_ms(), by, change.kind.as_str(), &subject, &detail).await?;
                tx.commit().await?;
                crate::fail_point("change-after-row");
                tracing::info!(voucher_id = %id, user_id = %by, rev, kind = change.kind.as_str(), value = change.value, "sale changed");
            } else {
                tx.rollback().await?;
            }
            if let Err(error) = shop.apply_changes(&row).await {
                tracing::warn!(%error, voucher_id = %id, "a change is not applied yet; the reconciler will repeat it");
            }
            // Another process may have been the one that applied it.
            shop.sale_changed(id);
            shop.sale(id).await
        })
        .await
    }

    /// Applies what Redis has not seen of a sale's changes; tells how many.
    pub(crate) async fn apply_changes(&self, voucher: &Voucher) -> Result<u32, Error> {
        let id = voucher.voucher_id;
        let Some(live) = self.live(voucher).await?.sale else {
            return Ok(0);
        };
        let mut applied = 0;
        for (rev, change) in voucher::change_after(self.pool(), id, live.rev).await? {
            crate::fail_point("change-before-script");
            let keys = vec![self.names().sale(voucher.lane, id)];
            let args = vec![rev.into(), change.kind.as_str().into(), change.value.into()];
            let reply = self.redis().eval(&APPLY, keys, args).await;
            self.sale_changed(id);
            let reply = list(reply?)?;
            match reply.first().map(number).transpose()? {
                Some(1) => applied += 1,
                // Somebody else applied it.
                Some(2) => {}
                // Gone, or of another load: the next round reads it anew.
                _ => break,
            }
        }
        Ok(applied)
    }
}

/// The change as it has to be written; none when the row stands as it would after it.
fn due(row: &Voucher, change: Change, now_ms: i64) -> Result<Option<Change>, Error> {
    if now_ms >= row.end_ms {
        return match change.kind {
            ChangeKind::End => Ok(None),
            _ => Err(Error::Conflict("the sale is over".into())),
        };
    }
    match change.kind {
        ChangeKind::Stock if row.total + change.value > MAX_STOCK => Err(Error::Invalid(format!(
            "amount: the total would pass {MAX_STOCK}"
        ))),
        ChangeKind::Pause if row.paused => Ok(None),
        ChangeKind::Resume if !row.paused => Ok(None),
        _ => Ok(Some(change)),
    }
}
