//! Every Redis script: one file per atomic decision in `lua/`, each with its contract at the top.
//!
//! `mark.lua` holds what they share and is put before each.

use std::sync::LazyLock;

/// A script and its digest.
pub struct Script {
    /// The file it stands in, for logs.
    pub name: &'static str,
    source: String,
    sha1: String,
}

impl Script {
    fn new(name: &'static str, own: &str) -> Self {
        let source = format!("{}\n{own}", include_str!("../lua/mark.lua"));
        let sha1 = fred::types::scripts::Script::from_lua(&source)
            .sha1()
            .to_string();
        Self { name, source, sha1 }
    }

    /// The text that Redis compiles.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The digest that names it to `EVALSHA`.
    pub fn sha1(&self) -> &str {
        &self.sha1
    }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub static $name: LazyLock<Script> =
                LazyLock::new(|| Script::new($file, include_str!(concat!("../lua/", $file, ".lua"))));
        )*
    };
}

scripts! {
    /// Decides whether a user gets a voucher.
    ADMIT = "admit";
    /// Acknowledges orders whose rows are committed.
    ACK = "ack";
    /// Moves an entry to the dead letters.
    BURY = "bury";
    /// Acknowledges and deletes entries that carry nothing.
    DROP = "drop";
    /// Gives a dead letter back to the queue.
    REPLAY = "replay";
    /// Settles a dead letter as failed.
    DISCARD = "discard";
    /// Applies one change of a running sale.
    APPLY = "apply";
    /// Takes back a counted try.
    UNCOUNT = "uncount";
    /// Adds live rows to a load attempt's own hash.
    STAGE = "stage";
    /// Writes a sale under a load attempt's own epoch.
    LOAD = "load";
    /// Ends a load.
    FINISH = "finish";
    /// Gives marks whose entry is gone a new one.
    RESTORE = "restore";
    /// Reads a sale as admission would see it.
    SALE = "sale";
    /// Looks for a user's marked orders.
    MINE = "mine";
    /// Counts a lane's queue.
    LANE = "lane";
    /// Removes a consumer that holds nothing.
    FORGET = "forget";
    /// Leases a block of a day's order numbers.
    LEASE = "lease";
    /// Counts an event against a limit.
    LIMIT = "limit";
    /// Takes a lock, takes it once more, or gets in line for it.
    ENTER = "enter";
    /// Counts a lock down and gives it back.
    LEAVE = "leave";
    /// Gives a lock its whole lease again.
    RENEW = "renew";
    /// Leaves the line for a lock.
    WITHDRAW = "withdraw";
    /// Stops a sale at once.
    CLOSE = "close";
    /// Frees the memory of an ended sale.
    RELEASE = "release";
}
