//! Sessions remembered for a few seconds, so that a buyer's next press costs no look-up.
//!
//! A session that is ended or changed through this process is forgotten at once. One that is
//! ended through another process is recognised here until its time is over: that is the price,
//! and the setting says how long.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use moka::sync::Cache;
use tower_sessions::{
    SessionStore,
    cookie::time::OffsetDateTime,
    session::{Id, Record},
    session_store::Result,
};

/// The most sessions remembered; beyond it those used least go.
const MOST: u64 = 50_000;
/// How long an ended session is known to be ended: longer than a look-up of it can take that
/// began before it ended.
const ENDED: Duration = Duration::from_secs(30);

/// A store in front of which sessions are remembered.
#[derive(Debug, Clone)]
pub struct Remembering<S> {
    store: S,
    /// None: nothing is remembered.
    cache: Option<Remembered>,
}

#[derive(Debug, Clone)]
struct Remembered {
    fresh: Cache<Id, Record>,
    ended: Cache<Id, ()>,
}

impl Remembered {
    fn new(time: Duration) -> Self {
        let fresh = Cache::builder().max_capacity(MOST).time_to_live(time);
        let ended = Cache::builder().max_capacity(MOST).time_to_live(ENDED);
        Self {
            fresh: fresh.build(),
            ended: ended.build(),
        }
    }

    fn get(&self, id: &Id) -> Option<Record> {
        let alive = |record: &Record| record.expiry_date > OffsetDateTime::now_utc();
        self.fresh.get(id).filter(alive)
    }

    /// Remembers what was looked up; false when the session was ended meanwhile.
    fn put(&self, record: &Record) -> bool {
        self.fresh.insert(record.id, record.clone());
        // Looked at after it was put: whoever ends it marks it first and forgets it last.
        let ended = self.ended.contains_key(&record.id);
        if ended {
            self.fresh.invalidate(&record.id);
        }
        !ended
    }
}

impl<S> Remembering<S> {
    /// The store, with what it tells remembered for this long; not at all for zero.
    pub fn new(store: S, time: Duration) -> Self {
        Self {
            store,
            cache: (!time.is_zero()).then(|| Remembered::new(time)),
        }
    }
}

#[async_trait]
impl<S: SessionStore + Debug> SessionStore for Remembering<S> {
    async fn create(&self, record: &mut Record) -> Result<()> {
        self.store.create(record).await
    }

    async fn save(&self, record: &Record) -> Result<()> {
        let saved = self.store.save(record).await;
        if let Some(cache) = &self.cache {
            cache.fresh.invalidate(&record.id);
        }
        saved
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let Some(cache) = &self.cache else {
            return self.store.load(id).await;
        };
        // First: whoever ended it may still be at it.
        if cache.ended.contains_key(id) {
            return Ok(None);
        }
        if let Some(record) = cache.get(id) {
            return Ok(Some(record));
        }
        let found = self.store.load(id).await?;
        Ok(found.filter(|record| cache.put(record)))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        if let Some(cache) = &self.cache {
            // At once: a client that leaves now ends this call at the next wait.
            cache.ended.insert(*id, ());
            cache.fresh.invalidate(id);
        }
        let done = self.store.delete(id).await;
        if let Some(cache) = &self.cache {
            cache.fresh.invalidate(id);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::Notify;
    use tower_sessions::cookie::time;

    use super::*;

    /// A store of one session, which counts its look-ups and can hold one back.
    #[derive(Debug, Clone, Default)]
    struct One {
        looked: Arc<AtomicUsize>,
        hold: Arc<Notify>,
        held: Arc<Notify>,
        holds: bool,
    }

    #[async_trait]
    impl SessionStore for One {
        async fn create(&self, _: &mut Record) -> Result<()> {
            Ok(())
        }
        async fn save(&self, _: &Record) -> Result<()> {
            Ok(())
        }
        async fn load(&self, id: &Id) -> Result<Option<Record>> {
            self.looked.fetch_add(1, Ordering::SeqCst);
            if self.holds {
                self.held.notify_one();
                self.hold.notified().await;
            }
            Ok(Some(record(*id, 60)))
        }
        async fn delete(&self, _: &Id) -> Result<()> {
            Ok(())
        }
    }

    fn record(id: Id, seconds: i64) -> Record {
        Record {
            id,
            data: Default::default(),
            expiry_date: OffsetDateTime::now_utc() + time::Duration::seconds(seconds),
        }
    }

    #[tokio::test]
    async fn a_session_is_looked_up_once_until_it_changes_or_ends() {
        let store = One::default();
        let remembering = Remembering::new(store.clone(), Duration::from_secs(60));
        let id = Id::default();
        for _ in 0..3 {
            assert!(remembering.load(&id).await.unwrap().is_some());
        }
        assert_eq!(store.looked.load(Ordering::SeqCst), 1);
        remembering.save(&record(id, 60)).await.unwrap();
        assert!(remembering.load(&id).await.unwrap().is_some());
        assert_eq!(store.looked.load(Ordering::SeqCst), 2);
        remembering.delete(&id).await.unwrap();
        assert!(
            remembering.load(&id).await.unwrap().is_none(),
            "ended, whatever a slow copy still says"
        );
    }

    #[tokio::test]
    async fn a_look_up_that_began_before_the_log_out_brings_nobody_back() {
        let store = One {
            holds: true,
            ..One::default()
        };
        let remembering = Remembering::new(store.clone(), Duration::from_secs(60));
        let id = Id::default();
        let slow = tokio::spawn({
            let remembering = remembering.clone();
            async move { remembering.load(&id).await }
        });
        store.held.notified().await;
        remembering.delete(&id).await.unwrap();
        store.hold.notify_one();
        assert!(slow.await.unwrap().unwrap().is_none());
        assert!(remembering.cache.unwrap().get(&id).is_none());
    }

    #[tokio::test]
    async fn one_that_expired_is_not_remembered_and_zero_remembers_nothing() {
        let remembered = Remembered::new(Duration::from_secs(60));
        let over = record(Id::default(), -1);
        assert!(remembered.put(&over) && remembered.get(&over.id).is_none());
        let store = One::default();
        let through = Remembering::new(store.clone(), Duration::ZERO);
        let id = Id::default();
        for _ in 0..2 {
            through.load(&id).await.unwrap();
        }
        assert_eq!(store.looked.load(Ordering::SeqCst), 2);
    }
}
