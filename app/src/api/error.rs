//! The one error form of the HTTP interface: `{code, message}`.
//!
//! Messages are written for the caller. What went wrong inside (SQL, Redis text,
//! addresses) goes to the log and never into a message.

use leptos::server_fn::{
    codec::JsonEncoding,
    error::{FromServerFnError, ServerFnErrorErr},
};
use serde::{Deserialize, Serialize};

/// What kind of refusal an [`ApiError`] is. Each kind has one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// An argument is missing, malformed or out of its range. 422.
    Invalid,
    /// Nobody is signed in. 401.
    Unauthenticated,
    /// Signed in, but not allowed. 403.
    Forbidden,
    /// The request came from another site. 403.
    CrossSite,
    /// There is no such thing, or it is somebody else's. 404.
    NotFound,
    /// It contradicts what is there. 409.
    Conflict,
    /// The body is over the limit. 413.
    TooLarge,
    /// Too many requests; wait. 429 with Retry-After.
    TooMany,
    /// A part of the shop is away; try again. 503 with Retry-After.
    Unavailable,
    /// A fault of ours. 500.
    Internal,
}

impl Code {
    /// Every code, for tests and for the page that explains one.
    pub const ALL: [Self; 10] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::CrossSite,
        Self::NotFound,
        Self::Conflict,
        Self::TooLarge,
        Self::TooMany,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The code as the contract spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::CrossSite => "cross_site",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::TooMany => "too_many",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    /// The code spelled `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

/// A refusal or a fault, safe to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct ApiError {
    /// What kind it is.
    pub code: Code,
    /// One English sentence for a person or a log.
    pub message: String,
}

impl ApiError {
    /// An error of `code` that says `message`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Nobody is signed in.
    pub fn unauthenticated() -> Self {
        Self::new(Code::Unauthenticated, "Sign in first.")
    }

    /// The signed-in account may not do this.
    pub fn forbidden() -> Self {
        Self::new(Code::Forbidden, "This account may not do that.")
    }

    /// A part of the shop did not answer.
    pub fn unavailable() -> Self {
        Self::new(
            Code::Unavailable,
            "The shop cannot answer this right now. Try again in a moment.",
        )
    }

    /// A fault of ours; the log has the rest.
    pub fn internal() -> Self {
        Self::new(Code::Internal, "Something went wrong on our side.")
    }
}

impl FromServerFnError for ApiError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(value: ServerFnErrorErr) -> Self {
        match value {
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Deserialization(_) => {
                Self::new(Code::Invalid, "The request's form could not be read.")
            }
            ServerFnErrorErr::Request(_) => Self::unavailable(),
            _ => Self::internal(),
        }
    }
}

/// The HTTP status of a code.
#[cfg(feature = "ssr")]
pub fn status_of(code: Code) -> http::StatusCode {
    use http::StatusCode;
    match code {
        Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Forbidden | Code::CrossSite => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Conflict => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Seconds for `Retry-After` where the function did not set its own.
#[cfg(feature = "ssr")]
pub fn retry_after(code: Code) -> Option<u32> {
    match code {
        Code::TooMany => Some(2),
        Code::Unavailable => Some(1),
        _ => None,
    }
}

#[cfg(feature = "ssr")]
impl From<seckill::Error> for ApiError {
    fn from(error: seckill::Error) -> Self {
        use seckill::Error;
        match error {
            Error::Invalid(message) => Self::new(Code::Invalid, message),
            Error::NotFound => Self::new(Code::NotFound, "There is no such thing here."),
            Error::Conflict(message) => Self::new(Code::Conflict, message),
            Error::Unavailable(source) => {
                tracing::warn!(error = %source, "a store did not answer");
                Self::unavailable()
            }
            Error::Internal(source) => {
                tracing::error!(error = %source, "a request failed inside");
                Self::internal()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_code_and_a_message() {
        let error = ApiError::new(Code::TooMany, "Wait.");
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            r#"{"code":"too_many","message":"Wait."}"#
        );
    }

    #[test]
    fn every_code_is_spelled_the_same_everywhere() {
        for code in Code::ALL {
            assert_eq!(
                serde_json::to_string(&code).unwrap(),
                format!("\"{}\"", code.as_str())
            );
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("nonsense"), None);
    }

    #[test]
    fn an_unreadable_form_is_invalid_and_says_nothing_of_the_inside() {
        let error =
            ApiError::from_server_fn_error(ServerFnErrorErr::Args("missing field `x`".into()));
        assert_eq!(error.code, Code::Invalid);
        assert!(!error.message.contains('`'));
    }

    #[cfg(feature = "ssr")]
    #[test]
    fn waiting_codes_say_how_long() {
        for code in Code::ALL {
            let waits = matches!(status_of(code).as_u16(), 429 | 503);
            assert_eq!(retry_after(code).is_some(), waits);
        }
    }
}
