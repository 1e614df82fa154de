//! Loading a sale into Redis.
//!
//! An attempt takes an epoch of its own, committed; locks the row; stages the live rows; lets
//! `load.lua` write the sale with `loading` set; commits `loaded_epoch` where the row's epoch
//! is still its own; and clears `loading`. Stopped anywhere and resumed later it changes
//! nothing: its epoch is no longer the newest. A sale never loaded opens by itself; a sale
//! that was lost comes back paused.

use std::time::Duration;

use crate::ids::VoucherId;
use crate::redis::{list, number};
use crate::scripts::{CLOSE, FINISH, LOAD, STAGE};
use crate::store::order::order_live;
use crate::store::voucher::{self, Voucher, voucher_loaded, voucher_lock, voucher_take_epoch};
use crate::{Error, Shop};

/// Rows staged in one command.
const CHUNK: i64 = 5_000;
/// How long staged rows outlive an attempt that died.
const STAGING: Duration = Duration::from_secs(3_600);

/// What a load attempt did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// The sale is in Redis under a new epoch.
    Written,
    /// The sale is whole already, or a newer attempt is at it.
    NotNeeded,
}

impl Shop {
    /// Loads a sale whose state in Redis is absent or not whole.
    pub(crate) async fn load(&self, id: VoucherId) -> Result<Loaded, Error> {
        let shop = self.clone();
        self.detached(async move {
            let Some(epoch) = shop.take_epoch(id).await? else {
                return Ok(Loaded::NotNeeded);
            };
            crate::fail_point("load-after-epoch");
            shop.load_under(id, epoch).await
        })
        .await
    }

    /// Closes a sale that Redis holds but that can't be trusted, and loads it anew.
    ///
    /// The epoch first: from then on the reconciler finishes what a crash leaves.
    pub(crate) async fn load_anew(&self, voucher: &Voucher) -> Result<Loaded, Error> {
        let (shop, lane, id) = (self.clone(), voucher.lane, voucher.voucher_id);
        self.detached(async move {
            let epoch = voucher_take_epoch(shop.pool(), id)
                .await?
                .ok_or(Error::NotFound)?;
            crate::fail_point("load-after-epoch");
            let keys = vec![shop.names().sale(lane, id)];
            shop.redis().eval(&CLOSE, keys, Vec::new()).await?;
            shop.sale_changed(id);
            crate::fail_point("distrust-after-close");
            shop.load_under(id, epoch).await
        })
        .await
    }

    /// Takes an epoch for an attempt, if the sale has to be loaded.
    ///
    /// Whether it has to is judged under the row's lock: an epoch that is taken stops every
    /// confirmation until its load is done, and a load that was not needed closes a live sale.
    async fn take_epoch(&self, id: VoucherId) -> Result<Option<i64>, Error> {
        let mut tx = self.pool().begin().await?;
        let row = voucher_lock(&mut *tx, id).await?.ok_or(Error::NotFound)?;
        let live = self.live(&row).await?.sale;
        let whole = live.is_some_and(|live| live.whole && live.epoch == row.loaded_epoch);
        if whole && row.epoch == row.loaded_epoch {
            return Ok(None);
        }
        let epoch = voucher_take_epoch(&mut *tx, id).await?;
        tx.commit().await?;
        Ok(epoch)
    }

    async fn load_under(&self, id: VoucherId, epoch: i64) -> Result<Loaded, Error> {
        let mut tx = self.pool().begin().await?;
        let row = voucher_lock(&mut *tx, id).await?.ok_or(Error::NotFound)?;
        if row.epoch != epoch {
            return Ok(Loaded::NotNeeded);
        }
        let staged = self.stage(&mut tx, &row, epoch).await?;
        crate::fail_point("load-before-script");
        let written = self.write_sale(&row, epoch, staged).await?;
        crate::fail_point("load-after-script");
        if !written {
            return Ok(Loaded::NotNeeded);
        }
        if !voucher_loaded(&mut *tx, id, epoch).await? {
            return Ok(Loaded::NotNeeded);
        }
        tx.commit().await?;
        crate::fail_point("load-after-commit");
        self.finish(&row, epoch).await?;
        tracing::info!(voucher_id = %id, epoch, again = row.loaded_epoch > 0, "sale loaded");
        Ok(Loaded::Written)
    }

    /// Copies the live rows into a hash of this attempt's own; tells how many.
    async fn stage(
        &self,
        tx: &mut sqlx::PgConnection,
        row: &Voucher,
        epoch: i64,
    ) -> Result<i64, Error> {
        let key = self.names().staging(row.lane, row.voucher_id, epoch);
        let (mut above, mut staged) = (0, 0);
        loop {
            let rows = order_live(&mut *tx, row.voucher_id, above, CHUNK).await?;
            let Some((last, _)) = rows.last() else {
                return Ok(staged);
            };
            above = *last;
            staged += i64::try_from(rows.len()).unwrap_or(i64::MAX);
            let pairs = rows
                .iter()
                .flat_map(|(user, order)| [user.to_string().into(), order.to_string().into()]);
            let args = std::iter::once(STAGING.as_secs().to_string().into())
                .chain(pairs)
                .collect();
            self.redis()
                .eval_slow(&STAGE, vec![key.clone()], args)
                .await?;
        }
    }

    async fn write_sale(&self, row: &Voucher, epoch: i64, staged: i64) -> Result<bool, Error> {
        let (names, lane, id) = (self.names(), row.lane, row.voucher_id);
        let keys = vec![
            names.sale(lane, id),
            names.buyers(lane, id),
            names.inflight(lane),
            names.staging(lane, id, epoch),
        ];
        // A sale that was loaded before comes back closed: an operator looks first.
        let state = if row.paused || row.loaded_epoch > 0 {
            "paused"
        } else {
            "open"
        };
        let args = vec![
            id.to_string().into(),
            epoch.into(),
            row.rev.into(),
            row.total.into(),
            row.begin_ms.into(),
            row.end_ms.into(),
            state.into(),
            staged.into(),
        ];
        let reply = list(self.redis().eval_slow(&LOAD, keys, args).await?)?;
        match reply.first().map(number).transpose()? {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            // Redis restarted between the staging and the script: the next attempt stages anew.
            _ => Err(Error::Unavailable(
                "the staged rows of a load were lost".into(),
            )),
        }
    }

    /// Lets a loaded sale sell, if it still is what this epoch wrote.
    pub(crate) async fn finish(&self, row: &Voucher, epoch: i64) -> Result<bool, Error> {
        let (names, lane, id) = (self.names(), row.lane, row.voucher_id);
        let keys = vec![
            names.sale(lane, id),
            names.buyers(lane, id),
            names.inflight(lane),
        ];
        let args = vec![id.to_string().into(), epoch.into()];
        let reply = self.redis().eval(&FINISH, keys, args).await;
        self.sale_changed(id);
        Ok(number(&reply?)? == 1)
    }

    /// The sales that Redis has to hold at this time.
    pub(crate) async fn held(&self, now_ms: i64) -> Result<Vec<Voucher>, Error> {
        voucher::voucher_held(self.pool(), now_ms - self.hold_after_end_ms()).await
    }
}
