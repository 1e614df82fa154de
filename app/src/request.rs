//! What the server's layers put into a request for the pages and server functions.
//!
//! Beside these types a request's extensions hold the `tower_sessions::Session` and
//! leptos' own [`Nonce`](leptos::nonce::Nonce), the one that the
//! Content-Security-Policy of the answer names.

use std::net::IpAddr;

use seckill::ids::UserId;
use serde::{Deserialize, Serialize};

/// Key of [`SessionUser`] in the session.
pub const SESSION_USER: &str = "user";

/// The caller's address, as far as trusted proxies vouch for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The request's id: 32 lower-case hexadecimal digits. It appears in the log, in
/// `x-request-id`, and as the trace id that travels with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

impl RequestId {
    /// The W3C trace context that follows an order to the consumer, or nothing when
    /// the id is not what it should be. The parent id is the trace id's first half:
    /// there are no spans of our own to name.
    pub fn traceparent(&self) -> String {
        let id = self.0.as_str();
        let hex = id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if hex && !id.starts_with("0000000000000000") {
            format!("00-{id}-{}-01", &id[..16])
        } else {
            String::new()
        }
    }
}

/// Who is signed in; the only thing a session holds. The role is not here: it is
/// looked up where it matters, so that taking it away works at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUser {
    /// The account; text in JSON.
    pub user_id: UserId,
    /// The name to greet with.
    pub username: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_becomes_a_traceparent() {
        let id = RequestId("0af7651916cd43dd8448eb211c80319c".into());
        assert_eq!(
            id.traceparent(),
            "00-0af7651916cd43dd8448eb211c80319c-0af7651916cd43dd-01"
        );
    }

    #[test]
    fn anything_else_becomes_no_trace() {
        for id in [
            "",
            "xyz",
            "0AF7651916CD43DD8448EB211C80319C",
            "00000000000000000000000000000000",
        ] {
            assert_eq!(RequestId(id.into()).traceparent(), "");
        }
    }
}
