//! The atomic script that decides for every queue: stock, one per user, and where the queue is
//! Redis' own, the handing over, in one step.

use crate::road::stores::{Redis, Scene, order_id};
use crate::road::{Answer, Ask, Fault, RoadError};

/// Where the script itself puts the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handing {
    /// Nowhere: the process does.
    Process,
    List,
    Channel,
    Stream,
}

impl Handing {
    fn command(self) -> &'static str {
        match self {
            Self::Process => "",
            Self::List => "redis.call('RPUSH', KEYS[3], ARGV[1] .. ' ' .. ARGV[2])",
            Self::Channel => "redis.call('PUBLISH', KEYS[3], ARGV[1] .. ' ' .. ARGV[2])",
            Self::Stream => "redis.call('XADD', KEYS[3], '*', 'order', ARGV[1] .. ' ' .. ARGV[2])",
        }
    }
}

pub(crate) struct Script {
    pub(crate) redis: Redis,
    sha: String,
    stock: String,
    buyers: String,
    /// The list, channel or stream.
    pub(crate) queue: String,
}

impl Script {
    pub(crate) async fn open(scene: &Scene, handing: Handing) -> Result<Self, RoadError> {
        let redis = Redis::open(&scene.redis_url).await?;
        let text = format!(
            "local had = redis.call('HGET', KEYS[2], ARGV[2]) if had then return had end \
             if tonumber(redis.call('GET', KEYS[1]) or 0) <= 0 then return 'sold-out' end \
             {} redis.call('DECR', KEYS[1]) redis.call('HSET', KEYS[2], ARGV[2], ARGV[1]) return ARGV[1]",
            handing.command()
        );
        Ok(Self {
            sha: redis.load(&text).await?,
            redis,
            stock: scene.key("stock"),
            buyers: scene.key("buyers"),
            queue: scene.key("queue"),
        })
    }

    /// Decides; the process stands between this and whatever comes next.
    pub(crate) async fn decide(&self, ask: &Ask) -> Result<Answer, RoadError> {
        let order = order_id();
        let (id, user) = (order.to_string(), ask.user.to_string());
        let words = [
            "EVALSHA",
            &self.sha,
            "3",
            &self.stock,
            &self.buyers,
            &self.queue,
            &id,
            &user,
        ];
        let said = self.redis.text(&words).await?.unwrap_or_default();
        let answer = match said.parse::<i64>() {
            Ok(given) if given == order => Answer::Accepted(order),
            Ok(earlier) => Answer::Already(Some(earlier)),
            Err(_) if said == "sold-out" => Answer::SoldOut,
            Err(_) => return Err(RoadError::Broken(format!("the script said {said:?}"))),
        };
        ask.at(Fault::Crash).await;
        Ok(answer)
    }
}

/// An order as it stands in a queue: its id and its user.
pub(crate) fn parse(text: &str) -> Result<(i64, i64), RoadError> {
    let broken = || RoadError::Broken(format!("not an order: {text:?}"));
    let (order, user) = text.split_once(' ').ok_or_else(broken)?;
    Ok((
        order.parse().map_err(|_| broken())?,
        user.parse().map_err(|_| broken())?,
    ))
}
