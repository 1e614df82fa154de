//! The contenders in the order of the road, and what the audit must find of each.

use super::Fault;

/// What a run must show of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// More rows than stock.
    Oversells,
    NeverOversells,
    /// Two rows of one user under the load.
    Doubles,
    NeverDoubles,
    /// Refusals although something was left.
    Conflicts,
    NeverConflicts,
    /// Orders that clients were told of are gone after SIGKILL.
    Loses,
    NeverLoses,
    /// Two rows of one user after SIGKILL and a new start.
    DoublesAfterCrash,
    NeverDoublesAfterCrash,
    /// Two rows of one user when a lock's holder meets this fault.
    DoublesAt(Fault),
    SafeAt(Fault),
}

/// A contender on the road.
#[derive(Debug)]
pub struct Row {
    /// By this name it is opened, and known in the documents.
    pub name: &'static str,
    /// What it is called for people.
    pub title: &'static str,
    /// 1 to 4.
    pub group: u8,
    /// Processes that answer.
    pub(crate) webs: usize,
    /// Whether a process of its own persists.
    pub(crate) apart: bool,
    /// Whether a lock's faults are tried.
    pub(crate) locks: bool,
    /// Whether the table has the unique index of an idempotent consumer.
    pub(crate) unique: bool,
    /// Whether it stands on RabbitMQ.
    pub rabbit: bool,
    pub(crate) product: bool,
    /// Whether it is known to lose, so that what is missing is not waited for.
    pub(crate) loses: bool,
    pub(crate) expect: &'static [Expect],
    /// What it is, what it gets wrong, what the next one cures.
    pub(crate) words: &'static str,
}

const PLAIN: Row = Row {
    name: "",
    title: "",
    group: 0,
    webs: 1,
    apart: false,
    locks: false,
    unique: false,
    rabbit: false,
    product: false,
    loses: false,
    expect: &[],
    words: "",
};

use Expect::{
    Conflicts, Doubles, DoublesAfterCrash, DoublesAt, Loses, NeverConflicts, NeverDoubles,
    NeverDoublesAfterCrash, NeverLoses, NeverOversells, Oversells, SafeAt,
};

/// Every contender.
pub fn rows() -> &'static [Row] {
    &ROWS
}

static ROWS: [Row; 18] = [
    Row {
        name: "check-then-decrement",
        title: "Check, then decrement",
        group: 1,
        expect: &[Oversells, Doubles, NeverLoses],
        words: "Reads the stock, looks whether something is left, and takes one in a second statement. \
            Everybody who read before the last unit went takes one too: it oversells, and nothing keeps a user from having two. \
            Nothing is lost in a crash, since the answer waits for the commit. \
            The next compares when it writes.",
        ..PLAIN
    },
    Row {
        name: "optimistic-version",
        title: "Optimistic, by version",
        group: 2,
        expect: &[NeverOversells, Conflicts, NeverLoses],
        words: "The decrement succeeds only if the row still has the version that was read. \
            It never oversells, and refuses nearly everybody who comes at the same time although the shelves are full. \
            The next needs no column of its own.",
        ..PLAIN
    },
    Row {
        name: "optimistic-stock",
        title: "Optimistic, by the stock that was read",
        group: 2,
        expect: &[NeverOversells, Conflicts, NeverLoses],
        words: "The stock itself serves as the version. \
            The refusals are the same: whether the number is what it was is the wrong question. \
            The next asks the right one.",
        ..PLAIN
    },
    Row {
        name: "stock-above-zero",
        title: "Optimistic, stock > 0",
        group: 2,
        expect: &[NeverOversells, NeverConflicts, Doubles, NeverLoses],
        words: "The decrement asks only that something is left. \
            It sells every unit once and refuses nobody while there is one, but one user can have two. \
            Every order waits for one row's lock, which is the speed of all that follow up to the script. \
            The next looks whether the user has an order.",
        ..PLAIN
    },
    Row {
        name: "one-per-user-unguarded",
        title: "One per user, unguarded",
        group: 3,
        expect: &[NeverOversells, Doubles, NeverLoses],
        words: "Looks for the user's order before it writes one. \
            Two requests of one user look at the same moment, find nothing, and both write. \
            The next lets them take turns.",
        ..PLAIN
    },
    Row {
        name: "mutex",
        title: "One per user, a mutex in the process",
        group: 3,
        expect: &[NeverOversells, NeverDoubles, NeverLoses],
        words: "A mutex for each user, held until the commit. \
            It keeps its word as long as there is one process. \
            The next row is the same with two.",
        ..PLAIN
    },
    Row {
        name: "mutex-two-processes",
        title: "The same mutex, two processes",
        group: 3,
        webs: 2,
        expect: &[NeverOversells, Doubles, NeverLoses],
        words: "Behind a load balancer each process has mutexes of its own, and the two requests of a user meet two of them. \
            The next puts the lock where both see it.",
        ..PLAIN
    },
    Row {
        name: "lease-first",
        title: "A lease lock, first form",
        group: 3,
        locks: true,
        expect: &[
            NeverOversells,
            NeverDoubles,
            DoublesAt(Fault::FailLate),
            NeverLoses,
        ],
        words: "Set if absent, with an expiry so that a dead holder does not lock for ever; released by deleting. \
            A holder that is late deletes the lock that somebody else has by now, and a third comes in beside the second. \
            The next looks whose it is.",
        ..PLAIN
    },
    Row {
        name: "lease-owner-check",
        title: "A lease lock, with owner check",
        group: 3,
        locks: true,
        expect: &[
            NeverDoubles,
            SafeAt(Fault::FailLate),
            DoublesAt(Fault::SlowRelease),
            NeverLoses,
        ],
        words: "The lock holds its owner's token, which is read before it is deleted. \
            Between the two steps the lease can end, and again somebody else's lock is deleted. \
            The next does both in one step.",
        ..PLAIN
    },
    Row {
        name: "lease-script",
        title: "A lease lock, released by script",
        group: 3,
        locks: true,
        expect: &[
            NeverDoubles,
            SafeAt(Fault::FailLate),
            SafeAt(Fault::SlowRelease),
            DoublesAt(Fault::Slow),
            NeverLoses,
        ],
        words: "Looking and deleting are one script: nobody's lock is deleted but one's own. \
            Work that takes longer than the lease still runs beside the next holder's. \
            The next renews.",
        ..PLAIN
    },
    Row {
        name: "lease-reentrant",
        title: "A reentrant lock that renews itself",
        group: 3,
        locks: true,
        expect: &[
            NeverDoubles,
            SafeAt(Fault::FailLate),
            SafeAt(Fault::SlowRelease),
            SafeAt(Fault::Slow),
            NeverLoses,
        ],
        words: "A hash of owner and depth, renewed a third into the lease for as long as its holder lives: the product's own (`seckill::lock`). \
            It passes here, but a process that stands still as a whole renews nothing, and a failover can forget the lock: \
            only a unique index or a fencing number would see that. And all of it happens while the buyer waits for the database. \
            The next decides in one atomic step, so that no lock is needed at all.",
        ..PLAIN
    },
    Row {
        name: "memory-queue",
        title: "Atomic script, queue in memory",
        group: 4,
        loses: true,
        expect: &[NeverOversells, NeverDoubles, NeverConflicts, Loses],
        words: "One script on Redis decides about stock and user, the answer goes out at once, and one thread writes what a bounded queue holds. \
            A crash loses the queue: buyers hold numbers of orders that never come. \
            The next keeps the queue outside the process.",
        ..PLAIN
    },
    Row {
        name: "redis-list",
        title: "Atomic script, Redis list",
        group: 4,
        apart: true,
        loses: true,
        expect: &[NeverOversells, NeverDoubles, NeverConflicts, Loses],
        words: "The script pushes the order on a list, a worker pops it, blocking. \
            What was popped and not yet committed is in no place at all when the worker dies. \
            The next hands the order to everybody who listens.",
        ..PLAIN
    },
    Row {
        name: "publish-subscribe",
        title: "Atomic script, publish/subscribe",
        group: 4,
        apart: true,
        loses: true,
        expect: &[NeverOversells, NeverDoubles, NeverConflicts, Loses],
        words: "The script publishes, a worker subscribes. \
            Nothing is kept: what was published while nobody listened was never heard, and what a dead worker had heard is gone. \
            The next keeps what was said.",
        ..PLAIN
    },
    Row {
        name: "stream-from-now",
        title: "Atomic script, stream read from now on",
        group: 4,
        apart: true,
        loses: true,
        expect: &[NeverOversells, NeverDoubles, NeverConflicts, Loses],
        words: "The script adds to a stream, which stays; a worker without a group reads on from the last entry there is when it starts. \
            What came while it was away, or was read and not written, it never sees again. \
            The next starts from the beginning instead.",
        ..PLAIN
    },
    Row {
        name: "stream-from-start",
        title: "Atomic script, stream read from the start",
        group: 4,
        apart: true,
        expect: &[
            NeverOversells,
            NeverDoubles,
            NeverConflicts,
            NeverLoses,
            DoublesAfterCrash,
        ],
        words: "After each start the worker reads everything again, and a consumer that is not idempotent writes everything again. \
            Only the worker knew how far it had come. \
            The next has a broker that knows, and a consumer that bears a repeat.",
        ..PLAIN
    },
    Row {
        name: "rabbitmq",
        title: "Atomic script, RabbitMQ",
        group: 4,
        apart: true,
        unique: true,
        rabbit: true,
        loses: true,
        expect: &[
            NeverOversells,
            NeverDoubles,
            NeverConflicts,
            NeverDoublesAfterCrash,
            Loses,
        ],
        words: "Publisher confirms and returns, persistent messages, acknowledgement by hand, local retries, an error exchange and queue, an idempotent consumer. \
            From the broker on nothing is lost; but decision and publishing are two steps on two servers, and a process that dies between them leaves a user with an order that nobody will ever write. \
            The next makes them one step.",
        ..PLAIN
    },
    Row {
        name: "product",
        title: "Atomic script, stream and group (the product)",
        group: 4,
        apart: true,
        unique: true,
        product: true,
        expect: &[
            NeverOversells,
            NeverDoubles,
            NeverConflicts,
            NeverLoses,
            NeverDoublesAfterCrash,
        ],
        words: "Decision, stream entry and mark are one script; a group remembers what was delivered, entries are acknowledged after the commit, and the consumer compares what it finds. \
            A process may die anywhere: what it held is pending with the group and is read again, and a repeat writes nothing. \
            It costs more Redis commands per order than the simple ways; this is what they buy.",
        ..PLAIN
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_contender_has_a_name_of_its_own_and_something_to_show() {
        let names: HashSet<&str> = rows().iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows().len());
        for row in rows() {
            assert!(
                !row.expect.is_empty() && !row.words.is_empty(),
                "{}",
                row.name
            );
            // Whether what is missing is waited for is what is expected.
            assert_eq!(row.loses, row.expect.contains(&Loses), "{}", row.name);
            assert!(!row.locks || row.webs == 1, "{}", row.name);
        }
    }

    #[test]
    fn only_the_product_gets_nothing_wrong_behind_the_script() {
        let good = |row: &&Row| {
            row.group == 4
                && !row
                    .expect
                    .iter()
                    .any(|e| matches!(e, Loses | DoublesAfterCrash))
        };
        let names: Vec<&str> = rows().iter().filter(good).map(|row| row.name).collect();
        assert_eq!(names, ["product"]);
    }
}
