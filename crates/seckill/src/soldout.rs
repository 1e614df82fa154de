//! "Sold out", answered by the process itself for a moment after Redis said so.
//!
//! In a rush most presses come when nothing is left. A process that was told so repeats it for
//! [`TRUSTED`], without a round trip, under these rules: only to users who can't hold an order;
//! not after a disturbance of the connections; not after a change made through this process;
//! and never longer, so that whatever changed elsewhere sells again within that time.
//!
//! Who holds an order is read once for each generation of the sale. While a sale is sold out,
//! nobody becomes a buyer of it: an admission needs stock, and whatever returns stock begins
//! another generation. So the buyers that are read after Redis said "sold out", and proved by a
//! look that found the same generation sold out still, are all there can be.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use fred::types::Value;

use crate::ids::{Lane, UserId, VoucherId};
use crate::redis::{list, text};
use crate::store::voucher::Voucher;
use crate::{Error, Shop};

/// How long Redis' word is repeated, from when it was asked.
const TRUSTED: Duration = Duration::from_millis(250);
/// The most buyers of a sale that a process keeps, 8 bytes each; a larger sale is left to Redis.
const BUYERS: usize = 200_000;
/// How long a sale that nobody asks for is kept in mind.
const KEPT: Duration = Duration::from_secs(60);
/// Buyers read in one command.
const CHUNK: u32 = 1_000;

/// What Redis said of a sale.
#[derive(Debug, Clone)]
struct Said {
    /// Of which generation.
    generation: i64,
    /// When it was asked, the last time it said so.
    asked: Instant,
    /// After how many disturbances of the connections.
    disturbance: u64,
    /// Who holds an order, in order; none before it is known.
    buyers: Option<Arc<[i64]>>,
    /// Somebody reads the buyers of this generation, or found them too many.
    reading: bool,
}

/// What a process knows of a sale.
#[derive(Debug, Default)]
struct Known {
    said: Option<Said>,
    /// What was asked before this says nothing: the sale was changed then.
    changed: Option<Instant>,
}

impl Known {
    fn is_fresh(&self, now: Instant) -> bool {
        let last = self.said.as_ref().map(|said| said.asked).max(self.changed);
        last.is_some_and(|last| now.duration_since(last) < KEPT)
    }
}

/// What a process knows of sales that are sold out.
#[derive(Debug, Default)]
pub(crate) struct SoldOut(RwLock<HashMap<VoucherId, Known>>);

impl SoldOut {
    /// Whether this user may be told "sold out" without asking Redis.
    fn is_known(&self, id: VoucherId, user: UserId, now: Instant, disturbance: u64) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(said) = known.get(&id).and_then(|known| known.said.as_ref()) else {
            return false;
        };
        let holds_none = || {
            let buyers = said.buyers.as_ref();
            buyers.is_some_and(|buyers| buyers.binary_search(&user.get()).is_err())
        };
        said.disturbance == disturbance && now.duration_since(said.asked) < TRUSTED && holds_none()
    }

    /// Takes note of Redis' word. True: the caller has to read who the buyers are.
    fn note(&self, id: VoucherId, generation: i64, asked: Instant, disturbance: u64) -> bool {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(&id) {
            all.retain(|_, known| known.is_fresh(asked));
        }
        let known = all.entry(id).or_default();
        if known.changed.is_some_and(|changed| asked <= changed) {
            return false;
        }
        if let Some(said) = &mut known.said
            && said.disturbance == disturbance
        {
            if generation < said.generation {
                return false;
            }
            if generation == said.generation {
                said.asked = said.asked.max(asked);
                return !std::mem::replace(&mut said.reading, true);
            }
        }
        known.said = Some(Said {
            generation,
            asked,
            disturbance,
            buyers: None,
            reading: true,
        });
        true
    }

    /// Takes the buyers of a generation, or that they can't be had: then the next word tries again.
    fn put(&self, id: VoucherId, generation: i64, disturbance: u64, read: Option<Read>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let said = all.get_mut(&id).and_then(|known| known.said.as_mut());
        let same =
            |said: &&mut Said| said.generation == generation && said.disturbance == disturbance;
        if let Some(said) = said.filter(same) {
            match read {
                Some(Read::Buyers(buyers)) => said.buyers = Some(buyers),
                Some(Read::TooMany) => {}
                None => said.reading = false,
            }
        }
    }

    /// The sale was changed through this process: what was said before does not hold.
    pub(crate) fn forget(&self, id: VoucherId) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(id).or_default();
        (known.said, known.changed) = (None, Some(Instant::now()));
    }
}

/// What reading the buyers gave.
enum Read {
    Buyers(Arc<[i64]>),
    TooMany,
}

impl Shop {
    /// Whether this process knows by itself that nothing is left for this user.
    pub(crate) fn is_sold_out(&self, id: VoucherId, user: UserId) -> bool {
        let disturbance = self.gate().disturbance();
        self.sold_out()
            .is_known(id, user, Instant::now(), disturbance)
    }

    /// Redis, asked at this time, said that nothing is left.
    pub(crate) fn was_sold_out(
        &self,
        lane: Lane,
        id: VoucherId,
        generation: i64,
        asked: Instant,
        disturbance: u64,
    ) {
        if !self.sold_out().note(id, generation, asked, disturbance) {
            return;
        }
        let shop = self.clone();
        tokio::spawn(async move {
            let read = shop.read_buyers(lane, id, generation).await;
            if let Err(error) = &read {
                tracing::debug!(%error, voucher_id = %id, "the buyers of a sale that is sold out can't be read");
            }
            let read = read.ok().flatten();
            shop.sold_out().put(id, generation, disturbance, read);
        });
    }

    /// Everybody who holds an order of a sale; none when it is not this generation, sold out.
    async fn read_buyers(
        &self,
        lane: Lane,
        id: VoucherId,
        generation: i64,
    ) -> Result<Option<Read>, Error> {
        let key = self.names().buyers(lane, id);
        let (mut cursor, mut buyers) = ("0".to_owned(), Vec::new());
        loop {
            let page = list(self.redis().hscan_page(&key, &cursor, CHUNK).await?)?;
            cursor = page.first().map(text).unwrap_or_default();
            let fields = list(page.into_iter().nth(1).unwrap_or(Value::Null))?;
            // The sentinel is no user.
            buyers.extend(
                fields
                    .chunks_exact(2)
                    .filter_map(|pair| text(&pair[0]).parse::<i64>().ok()),
            );
            if buyers.len() > BUYERS {
                return Ok(Some(Read::TooMany));
            }
            if cursor == "0" || cursor.is_empty() {
                break;
            }
        }
        let voucher: Arc<Voucher> = self.voucher(id).await?;
        let live = self.live(&voucher).await?.sale;
        let still = live
            .is_some_and(|live| live.loaded() && live.generation == generation && live.stock <= 0);
        buyers.sort_unstable();
        Ok(still.then(|| Read::Buyers(buyers.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (VoucherId, UserId, UserId) {
        let user = |id| UserId::new(id).expect("positive");
        (VoucherId::new(1).expect("positive"), user(7), user(8))
    }

    fn buyers(ids: &[i64]) -> Option<Read> {
        Some(Read::Buyers(ids.into()))
    }

    #[test]
    fn it_is_repeated_for_a_moment_and_only_to_who_holds_no_order() {
        let (known, (id, holder, other)) = (SoldOut::default(), ids());
        let asked = Instant::now();
        assert!(known.note(id, 5, asked, 1), "the first has to read");
        assert!(!known.note(id, 5, asked, 1), "and nobody else");
        assert!(
            !known.is_known(id, other, asked, 1),
            "the buyers are not known yet"
        );
        known.put(id, 5, 1, buyers(&[7]));
        let last = asked + TRUSTED - Duration::from_millis(1);
        assert!(known.is_known(id, other, last, 1));
        assert!(!known.is_known(id, holder, last, 1));
        assert!(!known.is_known(id, other, asked + TRUSTED, 1), "over");
        assert!(!known.is_known(id, other, last, 2), "after a disturbance");
        assert!(!known.note(id, 5, asked + TRUSTED, 1));
        assert!(known.is_known(id, other, asked + TRUSTED, 1), "said again");
    }

    #[test]
    fn what_is_older_than_the_generation_or_a_change_says_nothing() {
        let (known, (id, _, other)) = (SoldOut::default(), ids());
        let asked = Instant::now();
        assert!(known.note(id, 5, asked, 1));
        assert!(known.note(id, 6, asked, 1), "a new generation is read anew");
        known.put(id, 5, 1, buyers(&[]));
        assert!(
            !known.is_known(id, other, asked, 1),
            "buyers of another generation"
        );
        known.put(id, 6, 1, buyers(&[]));
        assert!(!known.note(id, 5, asked + TRUSTED, 1));
        assert!(
            !known.is_known(id, other, asked + TRUSTED, 1),
            "an older word renews nothing"
        );
        known.forget(id);
        assert!(!known.is_known(id, other, asked, 1));
        assert!(!known.note(id, 6, asked, 1), "asked before the change");
        assert!(!known.is_known(id, other, asked, 1));
    }

    #[test]
    fn buyers_that_could_not_be_read_are_read_again() {
        let (known, (id, ..)) = (SoldOut::default(), ids());
        let asked = Instant::now();
        assert!(known.note(id, 5, asked, 1));
        known.put(id, 5, 1, None);
        assert!(known.note(id, 5, asked, 1));
        known.put(id, 5, 1, Some(Read::TooMany));
        assert!(!known.note(id, 5, asked, 1), "too many stay too many");
    }
}
