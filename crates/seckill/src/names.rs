//! Every name in Redis, in one place.
//!
//! A *stream* is an append-only log of entries; a *group* hands each entry to one of its
//! *consumers* and remembers it as *pending* until it is acknowledged. Here: `admit.lua`
//! adds an order to its lane's stream and leaves a mark in the in-flight hash; a consumer
//! writes it to PostgreSQL; `ack.lua` removes entry and mark; what can't be written is moved
//! to the dead stream by `bury.lua`.
//!
//! All keys of a lane share its hash tag, so that one script may touch them on a cluster.

use std::sync::LazyLock;

use crate::ids::{Lane, VoucherId};

/// The consumer group of every orders stream.
pub const GROUP: &str = "orders";
/// The field of a buyers hash that only a load writes: without it the hash was lost.
pub const SENTINEL: &str = "@";
/// What keys begin with unless the setting says otherwise.
pub const DEFAULT_PREFIX: &str = "seckill";
/// Slots of a Redis Cluster.
const SLOTS: u32 = 16_384;

/// The names under one prefix.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Names under this prefix; it must not contain braces, which are the hash tag's.
    pub fn new(prefix: &str) -> Option<Self> {
        let fits = !prefix.is_empty()
            && prefix.len() <= 64
            && !prefix.contains(['{', '}', ' ', '\n', '\r']);
        fits.then(|| Self {
            prefix: prefix.to_owned(),
        })
    }

    /// hash: stock (left), total, begin_ms, end_ms, state, loading, epoch, rev, generation, admitted, acked, in_flight, dead
    pub fn sale(&self, lane: Lane, voucher: VoucherId) -> String {
        format!("{}:sale:{voucher}", self.lane(lane))
    }

    /// hash: user_id → order_id, and the [`SENTINEL`]
    pub fn buyers(&self, lane: Lane, voucher: VoucherId) -> String {
        format!("{}:buyers:{voucher}", self.lane(lane))
    }

    /// hash with expiry: the live rows that one load attempt (its epoch) has staged
    pub fn staging(&self, lane: Lane, voucher: VoucherId, epoch: i64) -> String {
        format!("{}:loading:{voucher}:{epoch}", self.lane(lane))
    }

    /// stream with the group [`GROUP`]: order_id, user_id, voucher_id, admitted_ms, epoch, traceparent
    pub fn orders(&self, lane: Lane) -> String {
        format!("{}:orders", self.lane(lane))
    }

    /// hash: order_id → the mark (see `lua/mark.lua`), and a sentinel for each sale
    pub fn inflight(&self, lane: Lane) -> String {
        format!("{}:inflight", self.lane(lane))
    }

    /// hash: entry → counted failures
    pub fn attempts(&self, lane: Lane) -> String {
        format!("{}:attempts", self.lane(lane))
    }

    /// stream: the entry, reason, deliveries, when
    pub fn dead(&self, lane: Lane) -> String {
        format!("{}:dead", self.lane(lane))
    }

    /// string: the last number leased on that UTC day (`yyyy-mm-dd`)
    pub fn sequence(&self, kind: &str, day: &str) -> String {
        format!("{}:id:{kind}:{day}", self.prefix)
    }

    /// string with expiry: the heartbeat of a consumer
    pub fn consumer(&self, name: &str) -> String {
        format!("{}:consumer:{name}", self.prefix)
    }

    /// hash: owner → depth
    pub fn lock(&self, name: &str) -> String {
        format!("{}:lock:{name}", self.prefix)
    }

    /// string with expiry: the last fencing number of a lock
    pub fn lock_fence(&self, name: &str) -> String {
        self.beside_lock(name, "fence")
    }

    /// sorted set with expiry: owner → when it got in line, in microseconds
    pub fn lock_line(&self, name: &str) -> String {
        self.beside_lock(name, "line")
    }

    /// sorted set with expiry: owner in line → when it counts as gone, in milliseconds
    pub fn lock_waiting(&self, name: &str) -> String {
        self.beside_lock(name, "waiting")
    }

    /// channel: the owner whose turn has come, of any lock
    pub fn lock_turns(&self) -> String {
        format!("{}:locks", self.prefix)
    }

    /// The lock's own name is the hash tag, so that one script may touch them all on a cluster.
    fn beside_lock(&self, name: &str, what: &str) -> String {
        format!("{{{}}}:{what}", self.lock(name))
    }

    /// string with expiry: events of one kind counted in the current window
    pub fn limit(&self, kind: &str, whom: &str) -> String {
        format!("{}:limit:{kind}:{whom}", self.prefix)
    }

    fn lane(&self, lane: Lane) -> String {
        format!("{}:{{{}}}", self.prefix, tag(lane))
    }
}

/// A lane's hash tag: a function of its number alone, so that it stays when the number of
/// lanes changes, and spread so that three nodes, the smallest cluster, get equal shares of
/// any multiple of three lanes, and other numbers of nodes nearly so.
///
/// Lane 0 is `0`. Lane n lies the van der Corput number of n in base 3 further round the ring
/// of slots (each three lanes are a third of it apart), and takes the first of `n`, `n.1`,
/// `n.2`, … within a 1024th of the ring of that.
pub fn tag(lane: Lane) -> String {
    FIRST
        .get(usize::from(lane.0))
        .cloned()
        .unwrap_or_else(|| find_tag(lane.0))
}

/// The tags of the lanes that anybody has, found once.
static FIRST: LazyLock<Vec<String>> = LazyLock::new(|| (0..64).map(find_tag).collect());

fn find_tag(number: u16) -> String {
    if number == 0 {
        return "0".into();
    }
    let target = (slot("0") + van_der_corput(u32::from(number))) % SLOTS;
    let near = |text: &String| {
        let away = (slot(text) + SLOTS - target) % SLOTS;
        away.min(SLOTS - away) <= SLOTS / 1_024
    };
    std::iter::once(number.to_string())
        .chain((1..).map(|n| format!("{number}.{n}")))
        .find(near)
        .expect("an endless run of texts meets every slot")
}

/// The digits of `n` in base 3, mirrored behind the point, as a part of the ring.
fn van_der_corput(mut n: u32) -> u32 {
    // Rounded once, at the end: a third of the ring is no whole number of slots.
    let (mut numerator, mut denominator) = (0_u64, 1_u64);
    while n > 0 {
        (numerator, denominator) = (numerator * 3 + u64::from(n % 3), denominator * 3);
        n /= 3;
    }
    u32::try_from(numerator * u64::from(SLOTS) / denominator).unwrap_or(0)
}

fn slot(tag: &str) -> u32 {
    u32::from(fred::util::redis_keyslot(tag.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_zero_is_tagged_with_zero() {
        let names = Names::new("seckill").expect("a valid prefix");
        let voucher = VoucherId::new(7).expect("positive");
        assert_eq!(names.sale(Lane(0), voucher), "seckill:{0}:sale:7");
        assert_eq!(names.orders(Lane(0)), "seckill:{0}:orders");
    }

    #[test]
    fn lanes_meet_the_nodes_of_a_cluster_in_equal_shares() {
        let share = |lanes: u16, nodes: usize| {
            let mut share = vec![0_u32; nodes];
            for lane in 0..lanes {
                share[slot(&tag(Lane(lane))) as usize * nodes / SLOTS as usize] += 1;
            }
            share
        };
        for lanes in [3, 6, 9, 12, 24] {
            let equal = vec![u32::from(lanes) / 3; 3];
            assert_eq!(share(lanes, 3), equal, "{lanes} lanes over three nodes");
        }
        for (lanes, nodes) in [(8, 4), (12, 6), (16, 5)] {
            let share = share(lanes, nodes);
            let (least, most) = (share.iter().min(), share.iter().max());
            assert!(
                most <= least.map(|n| n + 2).as_ref() && least > Some(&0),
                "{lanes} over {nodes}: {share:?}"
            );
        }
    }

    #[test]
    fn a_prefix_with_a_hash_tag_is_refused() {
        assert!(Names::new("a{b}").is_none());
        assert!(Names::new("").is_none());
    }
}
