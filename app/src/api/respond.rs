//! How a server function tells the layers around it what to answer a plain form.

use http::{HeaderName, HeaderValue, header};
use leptos::prelude::use_context;
use leptos_axum::ResponseOptions;

use super::{ApiError, Code};
use crate::routes;

/// Response header with the page that shows a form's result. The server turns it into
/// a redirect for browsers and removes it for everybody else.
pub const SHOW_HEADER: HeaderName = HeaderName::from_static("x-seckill-page");

/// Says which page shows the result of this call; `path` is a local path.
pub fn show(path: &str) {
    set(SHOW_HEADER, path);
}

/// Sets `Retry-After` in whole seconds, rounded up, at least one.
pub(crate) fn retry_after_ms(ms: u64) {
    set(header::RETRY_AFTER, &ms.div_ceil(1000).max(1).to_string());
}

/// Passes `result` on after saying which page shows it.
pub(crate) fn answered<T>(
    result: Result<T, ApiError>,
    page: impl FnOnce(&T) -> String,
    refused: impl FnOnce(&ApiError) -> String,
) -> Result<T, ApiError> {
    match &result {
        Ok(value) => show(&page(value)),
        Err(error) => show(&refused(error)),
    }
    result
}

/// Where a form goes that was refused: to sign in and come back, to `here` with the
/// code, or to the page that explains what has no page of its own.
pub(crate) fn refusal_page(error: &ApiError, here: &str) -> String {
    match error.code {
        Code::Unauthenticated => routes::login(here),
        Code::Invalid | Code::Conflict | Code::TooMany | Code::Unavailable | Code::NotFound => {
            let glue = if here.contains('?') { '&' } else { '?' };
            format!("{here}{glue}error={}", error.code.as_str())
        }
        code => routes::problem(code.as_str()),
    }
}

fn set(name: HeaderName, value: &str) {
    // Without a request (a test that calls the function) there is nobody to tell.
    if let (Some(response), Ok(value)) = (
        use_context::<ResponseOptions>(),
        HeaderValue::from_str(value),
    ) {
        response.insert_header(name, value);
    }
}
