//! One visit of one page: who, in which language, with which query.

use std::{collections::HashMap, convert::Infallible};

use axum::extract::{FromRequestParts, Query};
use http::{HeaderMap, header, request::Parts};
use leptos::nonce::Nonce;
use seckill::{Role, User};

use crate::{
    AppState,
    api::ApiError,
    caller::Caller,
    request::{RequestId, SessionUser},
    words::{Lang, Words},
};

/// How the page is lit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the device prefers.
    Auto,
    /// Light, by the person's switch.
    Light,
    /// Dark, by the person's switch.
    Dark,
}

impl Theme {
    /// The value of the cookie, of the form and of `data-theme`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme called `text`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Auto, Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| theme.as_str() == text)
    }
}

/// What every page knows about its request.
pub struct Visit {
    pub(crate) state: AppState,
    pub(crate) caller: Caller,
    /// Who is signed in; an error when the session store could not be asked.
    pub(crate) user: Result<Option<SessionUser>, ApiError>,
    pub(crate) lang: Lang,
    pub(crate) words: &'static Words,
    pub(crate) theme: Theme,
    pub(crate) nonce: Nonce,
    /// Path and query, to come back to.
    pub(crate) here: String,
    pub(crate) request_id: String,
    /// Whether this person may use the console, as far as it is known without asking.
    pub(crate) staff: bool,
    query: HashMap<String, String>,
}

impl FromRequestParts<AppState> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let caller = Caller::of(state.clone(), parts);
        let user = caller.user().await;
        let signed_in = user.as_ref().ok().and_then(Option::as_ref);
        let staff = signed_in.is_some_and(|user| state.staff.has(user.user_id));
        let accept = parts
            .headers
            .get(header::ACCEPT_LANGUAGE)
            .and_then(|value| value.to_str().ok());
        let lang = Lang::choose(cookie(&parts.headers, "lang"), accept);
        let query = Query::try_from_uri(&parts.uri)
            .map(|Query(query)| query)
            .unwrap_or_default();
        Ok(Self {
            state: state.clone(),
            caller,
            user,
            lang,
            words: lang.words(),
            theme: cookie(&parts.headers, "theme")
                .and_then(Theme::parse)
                .unwrap_or(Theme::Auto),
            nonce: parts.extensions.get::<Nonce>().cloned().unwrap_or_default(),
            here: parts
                .uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
            request_id: parts
                .extensions
                .get::<RequestId>()
                .map(|id| id.0.clone())
                .unwrap_or_default(),
            staff,
            query,
        })
    }
}

impl Visit {
    /// The signed-in user, as far as the session store could tell.
    pub(crate) fn signed_in(&self) -> Option<&SessionUser> {
        self.user.as_ref().ok().and_then(Option::as_ref)
    }

    /// The query's value called `name`; an empty one counts as none.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The signed-in user of a page that needs one.
    pub(crate) fn require_user(&self) -> Result<&SessionUser, ApiError> {
        match &self.user {
            Ok(Some(user)) => Ok(user),
            Ok(None) => Err(ApiError::unauthenticated()),
            Err(error) => Err(error.clone()),
        }
    }

    /// The operator of a page of the console.
    pub(crate) async fn require_role(&mut self, role: Role) -> Result<User, ApiError> {
        let user = self.caller.require_role(role).await?;
        self.staff = true;
        Ok(user)
    }
}

/// The value of the cookie called `name`.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(
            header::COOKIE,
            HeaderValue::from_static("xlang=no; lang=zh;theme=dark"),
        );
        assert_eq!(cookie(&headers, "lang"), Some("zh"));
        assert_eq!(cookie(&headers, "theme"), Some("dark"));
        assert_eq!(cookie(&headers, "the"), None);
    }

    #[test]
    fn a_theme_is_one_of_three() {
        assert_eq!(Theme::parse("dark"), Some(Theme::Dark));
        assert_eq!(Theme::parse("neon"), None);
    }
}
