//! What surrounds every page: document, head, header, footer, and the loader of islands.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use hydration_context::{SharedContext, SsrSharedContext};
use leptos::{nonce::Nonce, prelude::*};

use super::visit::{Theme, Visit};
use crate::{islands::Icon, routes, words::Lang};

/// Which bundle a page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bundle {
    /// No island on the page.
    None,
    /// The buyer's.
    Shop,
    /// The operator's.
    Console,
}

/// A page's own part of the head.
pub(crate) struct Head {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    /// The price in cents of the one thing that the page sells, for previews.
    pub(crate) price_cents: Option<i64>,
    pub(crate) bundle: Bundle,
}

impl Head {
    /// A page without islands.
    pub(crate) fn plain(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            description: None,
            price_cents: None,
            bundle: Bundle::None,
        }
    }
}

/// Loads the bundle, wakes every island in the order of the document, and then marks the
/// page, so that nothing that waits for the mark finds a sleeping island.
const LOADER: &str = include_str!("loader.js");

/// Renders a shop page.
pub(crate) fn page<V: IntoView + 'static>(
    visit: &Visit,
    status: StatusCode,
    head: Head,
    body: impl FnOnce() -> V,
) -> Response {
    render(visit, status, head, || {
        view! {
            {header(visit)}
            <main id="content" class="page" tabindex="-1">{body()}</main>
            {footer(visit)}
        }
    })
}

/// Renders a whole document around `body`.
pub(crate) fn render<V: IntoView + 'static>(
    visit: &Visit,
    status: StatusCode,
    head: Head,
    body: impl FnOnce() -> V,
) -> Response {
    // Nothing on a page is hydrated but its islands.
    let context: Arc<dyn SharedContext + Send + Sync> = Arc::new(SsrSharedContext::new_islands());
    let owner = Owner::new_root(Some(context));
    let html = owner.with(|| document(visit, head, body()).to_html());
    owner.unset_with_forced_cleanup();

    let mut response = (status, format!("<!DOCTYPE html>{html}")).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    // It shows who is signed in and what is left now.
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    headers.insert(
        header::VARY,
        HeaderValue::from_static("accept-language, cookie"),
    );
    response
}

fn document(visit: &Visit, head: Head, body: impl IntoView) -> impl IntoView {
    let words = visit.words;
    let theme = (visit.theme != Theme::Auto).then_some(visit.theme.as_str());
    let site = words.shell.site;
    let title = if head.title == site {
        head.title
    } else {
        format!("{} · {site}", head.title)
    };
    let description = head
        .description
        .unwrap_or_else(|| words.sales.description.to_owned());
    let price = head
        .price_cents
        .map(|cents| format!("{}.{:02}", cents / 100, cents % 100));
    let files = match head.bundle {
        Bundle::None => None,
        Bundle::Shop => Some((visit.state.bundles.shop.clone(), "shop")),
        Bundle::Console => Some((visit.state.bundles.console.clone(), "console")),
    };
    let hydrated = files.is_none().then_some("");
    let loader = files.map(|(folder, name)| loader(&folder, name, visit.nonce.clone()));
    view! {
        <html lang=words.html_lang data-theme=theme data-hydrated=hydrated>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover"/>
                <meta name="color-scheme" content="light dark"/>
                <title>{title.clone()}</title>
                <meta name="description" content=description.clone()/>
                {preview("og:type", if price.is_some() { "product" } else { "website" }.to_owned())}
                {price.map(|amount| view! {
                    {preview("product:price:amount", amount)}
                    {preview("product:price:currency", "CNY".to_owned())}
                })}
                {preview("og:site_name", site.to_owned())}
                {preview("og:title", title)}
                {preview("og:description", description)}
                <link rel="stylesheet" href=visit.state.bundles.style.clone()/>
                <link rel="icon" type="image/svg+xml" href=MARK/>
                {loader}
            </head>
            <body>
                <div hidden inner_html=SPRITE></div>
                {body}
            </body>
        </html>
    }
}

/// A line of the preview that is shown where the page's link is shared.
fn preview(property: &'static str, content: String) -> impl IntoView {
    leptos::html::meta()
        .attr("property", property)
        .content(content)
}

fn loader(folder: &str, name: &str, nonce: Nonce) -> impl IntoView + use<> {
    let script = format!("/{folder}/{name}.js");
    let wasm = format!("/{folder}/{name}_bg.wasm");
    let source = LOADER.replace("SCRIPT", &script).replace("WASM", &wasm);
    view! {
        <link rel="modulepreload" href=script/>
        <link rel="preload" href=wasm r#as="fetch" r#type="application/wasm" crossorigin="anonymous"/>
        <script type="module" nonce=nonce inner_html=source></script>
    }
}

/// The bar on top of every page.
pub(crate) fn header(visit: &Visit) -> impl IntoView + use<> {
    let words = &visit.words.shell;
    let path = visit.here.split('?').next().unwrap_or_default();
    let current = |target: &str| (path == target).then_some("page");
    let account = match visit.signed_in() {
        Some(user) => view! {
            <span class="who" title=(words.signed_in_as)(&user.username)>{user.username.clone()}</span>
            <form method="post" action="/api/logout">
                <button type="submit" class="button quiet small">{words.sign_out}</button>
            </form>
        }
        .into_any(),
        None => view! {
            <a class="button quiet small" href=routes::login(crate::next::or_home(Some(&visit.here)))>{words.sign_in}</a>
        }
        .into_any(),
    };
    view! {
        <a class="skip" href="#content">{words.skip}</a>
        <header class="top">
            <a class="brand" href=routes::HOME>
                <svg class="mark" aria-hidden="true" width="28" height="28"><use href="#i-mark"></use></svg>
                <span>{words.site}</span>
            </a>
            <nav aria-label=words.main_nav>
                <a href=routes::HOME aria-current=current(routes::HOME)>{words.sales}</a>
                <a href=routes::ORDERS aria-current=current(routes::ORDERS)>{words.orders}</a>
                {visit.staff.then(|| view! {
                    <a href=routes::ADMIN aria-current=path.starts_with(routes::ADMIN).then_some("true")>{words.console}</a>
                })}
            </nav>
            <div class="account">{account}</div>
        </header>
    }
}

/// The promise, language and appearance.
pub(crate) fn footer(visit: &Visit) -> impl IntoView + use<> {
    let words = &visit.words.shell;
    let here = visit.here.clone();
    let choice =
        move |name: &'static str, value: &'static str, label: &'static str, chosen: bool| {
            view! {
                <button type="submit" name=name value=value class="choice"
                    aria-pressed=if chosen { "true" } else { "false" }>{label}</button>
            }
        };
    let lang = visit.lang;
    let languages = Lang::ALL
        .map(|(other, label)| choice("lang", other.as_str(), label, other == lang))
        .into_iter()
        .collect_view();
    let themes = [
        (Theme::Auto, words.theme_auto),
        (Theme::Light, words.theme_light),
        (Theme::Dark, words.theme_dark),
    ]
    .map(|(theme, label)| choice("theme", theme.as_str(), label, theme == visit.theme))
    .into_iter()
    .collect_view();
    view! {
        <footer class="bottom">
            <p class="promise">{words.promise}" "<a href=routes::ROAD>{visit.lang.road().link}</a></p>
            <div class="preferences">
                <form method="post" action=routes::PREFERENCES aria-label=words.language>
                    <input type="hidden" name="next" value=here.clone()/>
                    {languages}
                </form>
                <form method="post" action=routes::PREFERENCES aria-label=words.theme>
                    <input type="hidden" name="next" value=here/>
                    {themes}
                </form>
            </div>
        </footer>
    }
}

/// A message beside a form or a list: icon, then text.
pub(crate) fn notice(
    tone: &'static str,
    icon: &'static str,
    text: impl Into<String>,
) -> impl IntoView {
    view! {
        <div class="answer" role="status" data-tone=tone>
            <Icon name=Signal::stored(icon)/>
            <p>{text.into()}</p>
        </div>
    }
}

/// The icons, drawn once per page and used by name; no request, no font.
const SPRITE: &str = include_str!("sprite.svg");

/// The mark in the browser's tab; in the page itself, so that it costs no request.
const MARK: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 28 28'%3E%3Crect \
    width='28' height='28' rx='8' fill='%23b93815'/%3E%3Cpath d='M15.5 4 7 15.5h5.5L11.5 24 21 11.5h-6z' \
    fill='%23fff'/%3E%3C/svg%3E";
