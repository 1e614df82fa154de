//! Refusals and faults as pages: what it means, and what to do.

use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderValue, StatusCode, header};
use leptos::prelude::*;

use super::{
    shell::{Head, page},
    visit::Visit,
};
use crate::{
    api::{ApiError, Code, retry_after, status_of},
    next, routes,
};

/// `GET /problem?code=`: where a plain form lands that was refused and has no page of
/// its own.
pub async fn problem(visit: Visit) -> Response {
    let code = visit
        .query("code")
        .and_then(Code::parse)
        .unwrap_or(Code::NotFound);
    // The refusal was answered where it happened; this page only explains it. With the fault's
    // own status, anybody could fill the log and the metrics with faults that never were.
    let mut response = refused(&visit, code);
    if response.status().is_server_error() {
        *response.status_mut() = StatusCode::OK;
    }
    response
}

/// Any address that is none.
pub async fn not_found(visit: Visit) -> Response {
    refused(&visit, Code::NotFound)
}

/// The answer of a page that could not be loaded: a stranger signs in and comes back,
/// everybody else reads why.
pub(crate) fn page_of(visit: &Visit, error: &ApiError) -> Response {
    match error.code {
        Code::Unauthenticated => {
            Redirect::to(&routes::login(next::or_home(Some(&visit.here)))).into_response()
        }
        code => refused(visit, code),
    }
}

/// The page that explains `code`, with its status.
pub fn refused(visit: &Visit, code: Code) -> Response {
    let words = &visit.words.problem;
    let (title, advice) = words.of(code);
    let mut response = page(visit, status_of(code), Head::plain(title), || {
        let fault = status_of(code) == StatusCode::INTERNAL_SERVER_ERROR;
        let request = (!visit.request_id.is_empty()).then(|| {
            view! {
                <p class="muted small" class:strong=fault>
                    {words.request}" "<span class="code">{visit.request_id.clone()}</span>
                </p>
            }
        });
        view! {
            <div class="problem">
                <svg class="problem-icon" aria-hidden="true" width="48" height="48">
                    <use href=icon(code)></use>
                </svg>
                <h1>{title}</h1>
                <p class="lead">{advice}</p>
                {request}
                <p><a class="button" href=routes::HOME>{words.home}</a></p>
            </div>
        }
    });
    if let Some(seconds) = retry_after(code) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

const fn icon(code: Code) -> &'static str {
    match code {
        Code::NotFound => "#i-empty",
        Code::Unauthenticated | Code::Forbidden | Code::CrossSite => "#i-lock",
        Code::TooMany | Code::Unavailable => "#i-hourglass",
        Code::Invalid | Code::Conflict | Code::TooLarge | Code::Internal => "#i-warning",
    }
}
