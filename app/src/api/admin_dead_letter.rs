//! Dead letters: entries that were given up on, and what an operator does with them.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json, PostUrl},
};
use serde::{Deserialize, Serialize};

use super::{ApiError, Listed};

/// An entry that was given up on. Ids are text as found: an entry may be broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// `<lane>:<milliseconds>-<sequence>` of the dead stream.
    pub entry_id: String,
    /// The order it carries.
    pub order_id: String,
    /// Who ordered.
    pub user_id: String,
    /// What.
    pub voucher_id: String,
    /// Why it was given up on.
    pub reason: String,
    /// How often it had been delivered.
    pub deliveries: u64,
    /// When it was given up on.
    pub at_ms: i64,
    /// The entry as it was.
    pub payload: String,
}

/// Dead letters. For viewers.
#[server(name = GetDeadLetters, prefix = "/api", endpoint = "admin/dead_letters", input = GetUrl, output = Json)]
pub async fn dead_letters(
    #[server(default)] lane: Option<String>,
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<DeadLetter>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    caller.require_role(seckill::Role::Viewer).await?;
    let lane = super::admin_queue::parse_lane(lane.as_deref())?;
    let page = seckill::page::Page::parse(after.as_deref(), limit.as_deref())?;
    Ok(Listed::from_paged(
        caller.state.shop.dead_letters(lane, &page).await?,
        DeadLetter::from,
    ))
}

/// Puts a dead letter's order back into the queue. For operators.
#[server(prefix = "/api", endpoint = "admin/replay", input = PostUrl, output = Json)]
pub async fn replay(#[server(default)] entry_id: String) -> Result<(), ApiError> {
    ssr::settle(ssr::Action::Replay, &entry_id).await
}

/// Ends a dead letter's order as failed and gives its voucher back. For operators.
#[server(prefix = "/api", endpoint = "admin/discard", input = PostUrl, output = Json)]
pub async fn discard(#[server(default)] entry_id: String) -> Result<(), ApiError> {
    ssr::settle(ssr::Action::Discard, &entry_id).await
}

#[cfg(feature = "ssr")]
mod ssr {
    use seckill::{Role, ids::LaneEntry};

    use super::DeadLetter;
    use crate::{
        api::{ApiError, answered, refusal_page},
        caller::{Caller, parse_id},
        routes::ADMIN_DEAD_LETTERS,
    };

    #[derive(Clone, Copy)]
    pub(super) enum Action {
        Replay,
        Discard,
    }

    impl From<seckill::DeadLetter> for DeadLetter {
        fn from(letter: seckill::DeadLetter) -> Self {
            Self {
                entry_id: letter.entry_id.to_string(),
                order_id: letter.order_id,
                user_id: letter.user_id,
                voucher_id: letter.voucher_id,
                reason: letter.reason,
                deliveries: letter.deliveries,
                at_ms: letter.at_ms,
                payload: letter.payload,
            }
        }
    }

    pub(super) async fn settle(action: Action, entry_id: &str) -> Result<(), ApiError> {
        answered(
            run(action, entry_id).await,
            |done| format!("{ADMIN_DEAD_LETTERS}?done={done}"),
            |error| refusal_page(error, ADMIN_DEAD_LETTERS),
        )
        .map(drop)
    }

    async fn run(action: Action, entry_id: &str) -> Result<&'static str, ApiError> {
        let caller = Caller::from_context()?;
        let operator = caller.require_role(Role::Operator).await?;
        let entry: LaneEntry = parse_id("entry_id", entry_id)?;
        let settled = match action {
            Action::Replay => caller.state.shop.replay(operator.user_id, entry).await?,
            Action::Discard => caller.state.shop.discard(operator.user_id, entry).await?,
        };
        let done = settled.as_str();
        tracing::info!(user = %operator.user_id, entry = %entry, done, "a dead letter was settled");
        Ok(done)
    }
}
