//! One read for everybody who asks at the same moment, and for a short while after it.
//!
//! Whoever asks first starts the read; who asks while it is under way waits for the same
//! answer, and who asks soon after it gets that. A failure is an answer too: a store that is
//! away is asked once, however many wait for it. The read runs in a task of its own, so that it
//! ends although its askers leave.

use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Either, Shared};

use crate::Error;

/// What a read found, shared by all who asked.
pub(crate) type Answer<T> = Result<Arc<T>, Arc<Error>>;

/// A read that several wait for.
type Flight<T> = Shared<BoxFuture<'static, Answer<T>>>;

/// A place for one thing that many ask for.
pub(crate) struct Coalesced<T>(Mutex<State<T>>);

struct State<T> {
    /// The last answer, and when its read was sent.
    known: Option<(Instant, Answer<T>)>,
    /// The read under way.
    flight: Option<Flight<T>>,
    /// Counts what made every earlier read worthless.
    forgotten: u64,
}

impl<T> Default for Coalesced<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            known: None,
            flight: None,
            forgotten: 0,
        }))
    }
}

impl<T: Send + Sync + 'static> Coalesced<T> {
    /// The thing as it was at most `keep` ago, by `read` if nobody has asked since.
    pub(crate) fn get<R>(
        self: &Arc<Self>,
        keep: Duration,
        read: impl FnOnce() -> R,
    ) -> Either<Ready<Answer<T>>, Flight<T>>
    where
        R: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut state = self.state();
        if let Some((asked, answer)) = &state.known
            && asked.elapsed() < keep
        {
            return Either::Left(ready(answer.clone()));
        }
        // One that has ended without leaving an answer here has panicked.
        let flight = state.flight.take().filter(|flight| flight.peek().is_none());
        let flight = flight.unwrap_or_else(|| self.start(state.forgotten, read()));
        state.flight = Some(flight.clone());
        Either::Right(flight)
    }

    fn start(
        self: &Arc<Self>,
        forgotten: u64,
        read: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Flight<T> {
        let (place, asked) = (Arc::clone(self), Instant::now());
        let task = tokio::spawn(async move {
            let answer = read.await.map(Arc::new).map_err(Arc::new);
            let mut state = place.state();
            if state.forgotten == forgotten {
                state.known = Some((asked, answer.clone()));
                state.flight = None;
            }
            answer
        });
        let ended = task.map(|ended| match ended {
            Ok(answer) => answer,
            Err(error) => Err(Arc::new(Error::Internal(error.into()))),
        });
        ended.boxed().shared()
    }

    /// Everything that was read before now is worth nothing any more.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.forgotten += 1;
        state.known = None;
        state.flight = None;
    }

    /// The same for one answer: who still holds it asks once more, and one read serves all of them.
    pub(crate) fn outlived(&self, answer: &Arc<T>) {
        let mut state = self.state();
        let same = state
            .known
            .as_ref()
            .is_some_and(|(_, known)| known.as_ref().is_ok_and(|known| Arc::ptr_eq(known, answer)));
        if same {
            state.known = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failure that several were told, for one of them.
pub(crate) fn told(error: Arc<Error>) -> Error {
    match &*error {
        Error::Invalid(text) => Error::Invalid(text.clone()),
        Error::NotFound => Error::NotFound,
        Error::Conflict(text) => Error::Conflict(text.clone()),
        Error::Unavailable(_) => Error::Unavailable(Box::new(error)),
        Error::Internal(_) => Error::Internal(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// A read that counts itself and ends when it is let go.
    struct Source {
        reads: AtomicU32,
        gate: Semaphore,
    }

    impl Source {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                reads: AtomicU32::new(0),
                gate: Semaphore::new(0),
            })
        }

        async fn read(self: Arc<Self>) -> Result<u32, Error> {
            let n = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
            let passed = self.gate.acquire().await;
            passed.expect("never closed").forget();
            Ok(n)
        }

        fn let_go(&self) {
            self.gate.add_permits(1);
        }
    }

    async fn ask(place: &Arc<Coalesced<u32>>, source: &Arc<Source>, keep: Duration) -> u32 {
        let answer = place.get(keep, || Arc::clone(source).read()).await;
        *answer.expect("the read succeeds")
    }

    #[tokio::test]
    async fn many_who_ask_at_once_cost_one_read_and_so_does_who_asks_soon_after() {
        let (place, source) = (Arc::default(), Source::new());
        source.let_go();
        let answers = join_all((0..1_000).map(|_| ask(&place, &source, LONG))).await;
        assert!(answers.iter().all(|answer| *answer == 1));
        assert_eq!(ask(&place, &source, LONG).await, 1);
        source.let_go();
        assert_eq!(ask(&place, &source, Duration::ZERO).await, 2);
    }

    #[tokio::test]
    async fn an_answer_that_was_under_way_at_a_change_is_not_kept() {
        let (place, source) = (Arc::default(), Source::new());
        let early = tokio::spawn({
            let (place, source) = (Arc::clone(&place), Arc::clone(&source));
            async move { ask(&place, &source, LONG).await }
        });
        while source.reads.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        place.forget();
        source.let_go();
        assert_eq!(early.await.expect("no panic"), 1);
        source.let_go();
        assert_eq!(ask(&place, &source, LONG).await, 2);
    }

    #[tokio::test]
    async fn a_read_goes_on_although_who_asked_first_has_left() {
        let (place, source) = (Arc::<Coalesced<u32>>::default(), Source::new());
        drop(place.get(LONG, || Arc::clone(&source).read()));
        source.let_go();
        assert_eq!(ask(&place, &source, LONG).await, 1);
    }

    #[tokio::test]
    async fn an_outlived_answer_is_asked_for_once_more() {
        let (place, source) = (Arc::<Coalesced<u32>>::default(), Source::new());
        source.gate.add_permits(2);
        let old = place
            .get(LONG, || Arc::clone(&source).read())
            .await
            .expect("read");
        place.outlived(&old);
        assert_eq!(ask(&place, &source, LONG).await, 2);
        place.outlived(&old);
        assert_eq!(ask(&place, &source, LONG).await, 2);
    }

    #[tokio::test]
    async fn a_panic_is_told_and_the_next_one_asks_again() {
        let (place, source) = (Arc::<Coalesced<u32>>::default(), Source::new());
        let broken = place.get(LONG, || async { panic!("on purpose") }).await;
        assert!(matches!(
            told(broken.expect_err("a panic")),
            Error::Internal(_)
        ));
        source.let_go();
        assert_eq!(ask(&place, &source, LONG).await, 1);
    }
}
