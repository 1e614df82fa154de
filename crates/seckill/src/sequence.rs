//! Order ids: 31 bits of seconds since 2022-01-01T00:00:00Z, 32 bits of a per-day (UTC) sequence.
//!
//! A process leases blocks of the sequence from Redis, so that an id costs no round trip.
//! Unique: a number is leased once a day, and a block serves only seconds of its own day.
//! Increasing within a process, whatever its clock does: seconds never go back, and within one
//! second the numbers rise. The number of a refused order is used again, but never the id:
//! only with a later second, or below a number that was not issued in this one. So a command
//! that runs twice can't give one id to two users.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::ids::OrderId;
use crate::names::Names;
use crate::redis::{Redis, text};
use crate::scripts::LEASE;

/// 2022-01-01T00:00:00Z in seconds since the Unix epoch.
pub const EPOCH_SECONDS: i64 = 1_640_995_200;
const DAY_SECONDS: i64 = 86_400;
const SEQUENCE_BITS: u32 = 32;
/// What is numbered, as it stands in the key.
const KIND: &str = "order";

/// Numbers a process' orders.
pub(crate) struct Sequence {
    redis: Redis,
    names: Names,
    /// Numbers leased at a time.
    block: u32,
    state: Mutex<State>,
    /// One lease at a time.
    leasing: tokio::sync::Mutex<()>,
}

/// What is leased and what was issued.
#[derive(Debug, Default)]
struct State {
    /// The UTC day (days since the Unix epoch) that blocks and returned numbers belong to.
    day: i64,
    /// Leased and unused: first and last of each block.
    blocks: VecDeque<(u32, u32)>,
    /// Numbers of definitely refused orders.
    returned: BTreeSet<u32>,
    /// The newest id's second (Unix) and number.
    issued: (i64, u32),
}

impl State {
    /// The next id at this second, or the day whose numbers have to be leased first.
    fn next(&mut self, now_seconds: i64) -> Result<(i64, u32), i64> {
        // The day never goes back either: of two callers around midnight the later one sets it.
        let second = now_seconds.max(self.issued.0).max(self.day * DAY_SECONDS);
        let day = second.div_euclid(DAY_SECONDS);
        if day != self.day {
            self.day = day;
            self.blocks.clear();
            self.returned.clear();
        }
        let above = if second == self.issued.0 {
            self.issued.1.saturating_add(1)
        } else {
            0
        };
        let reused = self.returned.range(above..).next().copied();
        let number = match reused {
            Some(number) => {
                self.returned.remove(&number);
                number
            }
            None => self.fresh().ok_or(day)?,
        };
        // After a lost counter a block may lie below what was issued this second.
        let second = if number < above { second + 1 } else { second };
        if second.div_euclid(DAY_SECONDS) != day {
            return Err(second.div_euclid(DAY_SECONDS));
        }
        self.issued = (second, number);
        Ok(self.issued)
    }

    fn fresh(&mut self) -> Option<u32> {
        let (first, last) = self.blocks.front_mut()?;
        let number = *first;
        if number == *last {
            self.blocks.pop_front();
        } else {
            *first += 1;
        }
        Some(number)
    }

    fn unused(&self) -> u64 {
        self.blocks
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1)
            .sum()
    }
}

impl Sequence {
    pub(crate) fn new(redis: Redis, names: Names, block: u32) -> Self {
        Self {
            redis,
            names,
            block: block.max(1),
            state: Mutex::default(),
            leasing: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere can't have left half a change: each is a few plain assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next id. Asks Redis only when no leased number is left.
    ///
    /// # Errors
    /// `Unavailable` when a block is due and Redis is away; `Internal` when the clock is
    /// outside 2022 to 2090, or the day's 2^32 numbers are used up.
    pub(crate) async fn take(self: &Arc<Self>, now_ms: i64) -> Result<OrderId, Error> {
        loop {
            let (next, low) = {
                let mut state = self.state();
                let next = state.next(now_ms.div_euclid(1_000));
                (next, state.unused() < u64::from(self.block) / 4)
            };
            match next {
                Ok((second, number)) => {
                    if low {
                        self.lease_ahead(now_ms);
                    }
                    return compose(second, number);
                }
                Err(day) => self.lease(day, now_ms, false).await?,
            }
        }
    }

    /// Takes back the id of an order that was definitely refused.
    pub(crate) fn give_back(&self, id: OrderId) {
        let (second, number) = decompose(id);
        let mut state = self.state();
        if second.div_euclid(DAY_SECONDS) == state.day {
            state.returned.insert(number);
        }
    }

    /// Leases the next block before the last number is used, so that nobody waits for it.
    fn lease_ahead(self: &Arc<Self>, now_ms: i64) {
        let Ok(guard) = self.leasing.try_lock() else {
            return;
        };
        drop(guard);
        let (this, day) = (Arc::clone(self), self.state().day);
        tokio::spawn(async move {
            if let Err(error) = this.lease(day, now_ms, true).await {
                tracing::debug!(%error, "leasing order numbers ahead");
            }
        });
    }

    async fn lease(&self, day: i64, now_ms: i64, ahead: bool) -> Result<(), Error> {
        let _one_at_a_time = self.leasing.lock().await;
        let enough = if ahead { u64::from(self.block) / 4 } else { 1 };
        if self.state().day == day && self.state().unused() >= enough {
            return Ok(());
        }
        let day_start_ms = day * DAY_SECONDS * 1_000;
        // A clock that was set back must not lower the place where a lost counter begins anew.
        let latest_ms = now_ms.max(self.state().issued.0 * 1_000);
        let of_day_ms = (latest_ms - day_start_ms).clamp(0, DAY_SECONDS * 1_000 - 1);
        let key = self.names.sequence(KIND, &date(day));
        let args = vec![
            i64::from(self.block).into(),
            day_start_ms.into(),
            of_day_ms.into(),
        ];
        let last = text(&self.redis.eval(&LEASE, vec![key], args).await?);
        if last.is_empty() {
            return Err(Error::impossible(
                "the day's 2^32 order numbers are used up",
            ));
        }
        let last: u32 = last
            .parse()
            .map_err(|_| Error::impossible("a lease beyond 32 bits"))?;
        let mut state = self.state();
        // A block belongs to its day: after midnight it is dropped.
        if state.day == day {
            state.blocks.push_back((last - (self.block - 1), last));
        }
        Ok(())
    }
}

fn compose(second: i64, number: u32) -> Result<OrderId, Error> {
    let since = second - EPOCH_SECONDS;
    let fits = (0..1 << 31).contains(&since);
    let id = (since << SEQUENCE_BITS) | i64::from(number);
    fits.then_some(id)
        .and_then(OrderId::new)
        .ok_or_else(|| Error::impossible("the clock is outside the years 2022 to 2090"))
}

fn decompose(id: OrderId) -> (i64, u32) {
    let second = (id.get() >> SEQUENCE_BITS) + EPOCH_SECONDS;
    let number = u32::try_from(id.get() & i64::from(u32::MAX)).expect("masked to 32 bits");
    (second, number)
}

/// A day as `yyyy-mm-dd`.
fn date(day: i64) -> String {
    jiff::Timestamp::from_second(day * DAY_SECONDS)
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_else(|_| day.to_string())
}

#[cfg(test)]
mod tests {
    use fred::interfaces::KeysInterface;

    use super::*;

    fn leased(day: i64, first: u32, last: u32) -> State {
        State {
            day,
            blocks: VecDeque::from([(first, last)]),
            ..State::default()
        }
    }

    #[test]
    fn ids_rise_although_the_clock_steps_back() {
        let noon = 20_000 * DAY_SECONDS + 43_200;
        let mut state = leased(20_000, 5, 100);
        let mut before = (0, 0);
        for second in [noon, noon, noon - 3_600, noon + 1, noon - 1, noon + 1] {
            let id = state.next(second).expect("numbers are leased");
            assert!(id > before, "{id:?} after {before:?}");
            before = id;
        }
    }

    #[test]
    fn a_block_is_dropped_at_midnight() {
        let midnight = 20_001 * DAY_SECONDS;
        let mut state = leased(20_000, 5, 100);
        assert!(state.next(midnight - 1).is_ok());
        assert_eq!(state.next(midnight), Err(20_001));
        assert_eq!(state.unused(), 0);
    }

    #[test]
    fn two_callers_around_midnight_do_not_drop_each_others_blocks() {
        let midnight = 20_001 * DAY_SECONDS;
        let mut state = leased(20_000, 5, 100);
        assert_eq!(state.next(midnight), Err(20_001));
        state.blocks.push_back((7, 9));
        assert_eq!(
            state.next(midnight - 1),
            Ok((midnight, 7)),
            "the earlier caller gets the new day's"
        );
        assert_eq!(state.next(midnight), Ok((midnight, 8)));
    }

    #[test]
    fn a_refused_number_comes_back_but_never_the_same_id() {
        let noon = 20_000 * DAY_SECONDS + 43_200;
        let mut state = leased(20_000, 5, 100);
        let refused = state.next(noon).expect("leased");
        state.returned.insert(refused.1);
        let same_second = state.next(noon).expect("leased");
        assert_eq!(
            same_second,
            (noon, 6),
            "the returned number is not above what was issued this second"
        );
        assert_eq!(
            state.next(noon + 1),
            Ok((noon + 1, 5)),
            "a second later it is used again"
        );
    }

    #[test]
    fn a_lost_counter_still_gives_rising_ids() {
        let noon = 20_000 * DAY_SECONDS + 43_200;
        let mut state = leased(20_000, 50, 50);
        let before = state.next(noon).expect("leased");
        state.blocks.push_back((7, 9));
        let after = state.next(noon).expect("leased");
        assert_eq!((before, after), ((noon, 50), (noon + 1, 7)));
    }

    #[test]
    fn an_id_has_63_bits_until_2090_and_none_before_2022() {
        assert!(compose(EPOCH_SECONDS - 1, 1).is_err());
        let last = compose(EPOCH_SECONDS + (1 << 31) - 1, u32::MAX).expect("the last second");
        assert_eq!(last.get(), i64::MAX);
        assert!(compose(EPOCH_SECONDS + (1 << 31), 0).is_err());
        assert_eq!(decompose(last), (EPOCH_SECONDS + (1 << 31) - 1, u32::MAX));
    }

    const PROCESSES: usize = 8;
    /// Ids of one process in one step.
    const EACH: usize = 5_000;
    /// Small enough that nobody leases more in a step than the clock allows after a loss.
    const BLOCK: u32 = 2_000;

    /// Milliseconds of a clock that goes eight seconds a step, now and then back by two minutes,
    /// and passes midnight before the last fifth of the steps. The days lie ahead of Redis' own
    /// clock, so that only the processes' counts.
    fn stepping_clock(steps: usize) -> Vec<i64> {
        let midnight = 25_000 * DAY_SECONDS * 1_000;
        let mut now = midnight - 8_000 * i64::try_from(steps * 4 / 5).expect("few") + 1_034;
        let step = |n| {
            now += match n % 20 {
                13 => -120_000,
                14 => 136_000,
                _ => 8_000,
            };
            now
        };
        (0..steps).map(step).collect()
    }

    /// Takes ids, of which each sixteenth is refused and given back, and lets the lease of the
    /// next block come to its end.
    async fn take_many(sequence: Arc<Sequence>, now_ms: i64) -> Vec<i64> {
        let mut taken = Vec::with_capacity(EACH);
        for n in 0..EACH {
            let id = sequence.take(now_ms).await.expect("leased");
            taken.push(id.get());
            if n % 16 == 0 {
                sequence.give_back(id);
            }
        }
        while sequence.state().unused() < u64::from(BLOCK) / 4 {
            tokio::task::yield_now().await;
        }
        taken
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn ten_million_ids_of_eight_processes_never_repeat() {
        let url = std::env::var("SECKILL_TEST_REDIS_URL").expect("run the tests with script/test");
        let scale = std::env::var("SECKILL_FAULTS_SCALE").unwrap_or_default();
        let steps: usize = 250 * scale.parse().unwrap_or(1).max(1);
        let redis = Redis::open(&url, 1, std::time::Duration::from_secs(60)).expect("a URL");
        let ready = redis.wait(std::time::Duration::from_secs(30));
        ready.await.expect("the test Redis answers");
        let prefix = format!("test_ids_{:016x}", rand::random::<u64>());
        let names = Names::new(&prefix).expect("a prefix");
        let sequences: Vec<_> = (0..PROCESSES)
            .map(|_| Arc::new(Sequence::new(redis.clone(), names.clone(), BLOCK)))
            .collect();
        let lose = |latest_ms: i64| {
            let key = names.sequence(KIND, &date(latest_ms / 1_000 / DAY_SECONDS));
            let client = redis.client();
            async move {
                let _: i64 = client.del(key).await.expect("the test Redis answers");
            }
        };
        let mut ids: Vec<Vec<i64>> = vec![Vec::new(); PROCESSES];
        let (mut highest, mut latest, mut losses) = (0, 0, 0);
        let midnight = steps * 4 / 5;
        for (step, now_ms) in stepping_clock(steps).into_iter().enumerate() {
            // The counter is lost while the clock is set back, and twice within one second, with
            // half of the processes taking ids in between.
            let (once, twice) = ([93, midnight + 13], [125, midnight + 5]);
            if once.contains(&step) || twice.contains(&step) {
                lose(latest).await;
                losses += 1;
            }
            let before = highest;
            for half in [0, PROCESSES / 2] {
                let mut at_ms = now_ms;
                // Around midnight the second half's clocks lie behind: on the first step they
                // still count the old day, while the others lease the new one.
                if half > 0 && [midnight - 1, midnight].contains(&step) {
                    at_ms -= [5_000, 10_000][step + 1 - midnight];
                }
                if half > 0 && twice.contains(&step) {
                    lose(now_ms).await;
                    losses += 1;
                    at_ms += 900;
                    assert_eq!(at_ms / 1_000, now_ms / 1_000, "the same second");
                }
                let own = half..half + PROCESSES / 2;
                let tasks: Vec<_> = sequences[own.clone()]
                    .iter()
                    .map(|sequence| tokio::spawn(take_many(Arc::clone(sequence), at_ms)))
                    .collect();
                for (task, all) in tasks.into_iter().zip(&mut ids[own]) {
                    let taken = task.await.expect("no process failed");
                    // By the second across processes: what is taken two seconds later is higher
                    // than everything anybody took before (one second a lost counter may cost).
                    if at_ms > latest + 2_000 {
                        assert!(taken[0] > before, "step {step}");
                    }
                    highest = highest.max(*taken.last().expect("ids"));
                    all.extend(taken);
                }
            }
            latest = latest.max(now_ms);
        }
        for all in &ids {
            assert!(
                all.windows(2).all(|pair| pair[0] < pair[1]),
                "increasing within a process"
            );
        }
        // Each is in order: what repeats meets itself when all are merged.
        let mut heads = [0; PROCESSES];
        let (mut last, mut repeats, mut count) = (0, 0, 0_usize);
        while let Some(least) = (0..PROCESSES)
            .filter(|p| heads[*p] < EACH * steps)
            .min_by_key(|p| ids[*p][heads[*p]])
        {
            let id = ids[least][heads[least]];
            repeats += usize::from(id == last);
            (last, heads[least], count) = (id, heads[least] + 1, count + 1);
        }
        let days = [latest, latest - DAY_SECONDS * 1_000].map(|ms| date(ms / 1_000 / DAY_SECONDS));
        for day in days {
            let gone = redis.client().del(names.sequence(KIND, &day)).await;
            let _: i64 = gone.expect("the test Redis answers");
        }
        assert_eq!((repeats, count), (0, EACH * steps * PROCESSES));
        // Not a print macro: it shall be seen although the test's output is captured.
        let figures = format!(
            "ids: {count} over {PROCESSES} processes, each sixteenth given back, a stepping clock, {losses} lost counters, midnight: {repeats} repeats\n"
        );
        std::io::Write::write_all(&mut std::io::stderr(), figures.as_bytes()).expect("written");
    }
}
