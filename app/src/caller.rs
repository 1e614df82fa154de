//! Who calls a server function, and with what rights.
//!
//! The signed-in user comes from the request's own session and is handed on by value;
//! nothing is kept per task or thread beyond leptos' context of this one request.

use std::net::{IpAddr, Ipv4Addr};

use http::request::Parts;
use leptos::prelude::use_context;
use seckill::{Role, User, ids::UserId};
use tower_sessions::Session;

use crate::{
    AppState,
    api::ApiError,
    request::{ClientAddress, RequestId, SESSION_USER, SessionUser},
};

/// The request of one call.
pub(crate) struct Caller {
    pub(crate) state: AppState,
    session: Option<Session>,
    pub(crate) address: IpAddr,
    pub(crate) traceparent: String,
}

impl Caller {
    /// The caller of the server function that runs now.
    pub(crate) fn from_context() -> Result<Self, ApiError> {
        let (Some(state), Some(parts)) = (use_context::<AppState>(), use_context::<Parts>()) else {
            tracing::error!("a server function ran without the application's state");
            return Err(ApiError::internal());
        };
        Ok(Self::of(state, &parts))
    }

    /// The caller of a request.
    pub(crate) fn of(state: AppState, parts: &Parts) -> Self {
        let extensions = &parts.extensions;
        Self {
            state,
            session: extensions.get::<Session>().cloned(),
            address: extensions
                .get::<ClientAddress>()
                .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.0),
            traceparent: extensions
                .get::<RequestId>()
                .map(RequestId::traceparent)
                .unwrap_or_default(),
        }
    }

    /// The signed-in user, if there is one.
    pub(crate) async fn user(&self) -> Result<Option<SessionUser>, ApiError> {
        match &self.session {
            Some(session) => session.get(SESSION_USER).await.map_err(session_error),
            None => Ok(None),
        }
    }

    /// The signed-in user, or `unauthenticated`.
    pub(crate) async fn require_user(&self) -> Result<SessionUser, ApiError> {
        self.user().await?.ok_or_else(ApiError::unauthenticated)
    }

    /// The signed-in account, if its role, as PostgreSQL has it now, reaches `role`:
    /// strangers are `unauthenticated`, others `forbidden`.
    pub(crate) async fn require_role(&self, role: Role) -> Result<User, ApiError> {
        let signed_in = self.require_user().await?;
        let user = self.state.shop.user(signed_in.user_id).await?;
        if let Some(user) = &user {
            self.state.staff.saw(user);
        }
        match user {
            Some(user) if rank(user.role) >= rank(role) => Ok(user),
            Some(_) => Err(ApiError::forbidden()),
            // The account is gone while its session lives on.
            None => Err(ApiError::unauthenticated()),
        }
    }

    /// Signs `user` in. The session's id changes, so that an id planted before the
    /// login is worth nothing after it.
    pub(crate) async fn sign_in(&self, user: &User) -> Result<(), ApiError> {
        let session = self.session()?;
        session.cycle_id().await.map_err(session_error)?;
        let value = SessionUser {
            user_id: user.user_id,
            username: user.username.clone(),
        };
        session
            .insert(SESSION_USER, value)
            .await
            .map_err(session_error)
    }

    /// Signs whoever is signed in out, and forgets the session in the store too.
    pub(crate) async fn sign_out(&self) -> Result<(), ApiError> {
        self.session()?.flush().await.map_err(session_error)
    }

    fn session(&self) -> Result<&Session, ApiError> {
        self.session.as_ref().ok_or_else(|| {
            tracing::error!("a request came without a session layer");
            ApiError::internal()
        })
    }
}

/// Roles by what they may do: each may do what those below it may.
pub(crate) fn rank(role: Role) -> u8 {
    match role {
        Role::Buyer => 0,
        Role::Viewer => 1,
        Role::Operator => 2,
        Role::Admin => 3,
    }
}

/// The id behind `text`, an argument called `name`.
pub(crate) fn parse_id<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, ApiError> {
    text.trim().parse().map_err(|_| {
        let problem = if text.trim().is_empty() {
            "is missing"
        } else {
            "is not a valid id"
        };
        ApiError::new(crate::api::Code::Invalid, format!("{name} {problem}."))
    })
}

/// Whether `user` may look behind the coarse stock figure.
pub(crate) async fn is_admin(state: &AppState, user: Option<UserId>) -> bool {
    match user {
        Some(id) => matches!(state.shop.user(id).await, Ok(Some(user)) if user.role == Role::Admin),
        None => false,
    }
}

fn session_error(error: tower_sessions::session::Error) -> ApiError {
    match error {
        tower_sessions::session::Error::Store(source) => {
            tracing::warn!(error = %source, "the session store did not answer");
            ApiError::unavailable()
        }
        tower_sessions::session::Error::SerdeJson(source) => {
            tracing::error!(error = %source, "a session holds something unreadable");
            ApiError::internal()
        }
    }
}
