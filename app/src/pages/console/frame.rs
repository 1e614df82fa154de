//! What surrounds every page of the console: strip, navigation, texts of the panels.

use axum::response::Response;
use http::StatusCode;
use leptos::prelude::*;

use super::{
    super::{
        shell::{Bundle, Head, footer, header, notice, render},
        visit::Visit,
    },
    alarms::alarms,
};
use crate::{
    api::Code,
    islands::{Icon, PanelTexts},
    routes,
};

/// Renders a page of the console.
pub(super) fn frame<V: IntoView + 'static>(
    visit: &Visit,
    title: &'static str,
    bundle: Bundle,
    body: impl FnOnce() -> V,
) -> Response {
    let words = &visit.words.console;
    let head = Head {
        title: format!("{title} · {}", words.title),
        description: None,
        price_cents: None,
        bundle,
    };
    render(visit, StatusCode::OK, head, || {
        let path = visit.here.split('?').next().unwrap_or_default();
        let links = [
            (routes::ADMIN, words.overview),
            (routes::ADMIN_SALES, words.sales),
            (routes::ADMIN_QUEUE, words.queue),
            (routes::ADMIN_PENDING, words.pending),
            (routes::ADMIN_DEAD_LETTERS, words.dead_letters),
            (routes::ADMIN_REPORTS, words.reports),
            (routes::ADMIN_AUDIT, words.audit_log),
        ]
        .map(|(target, label)| {
            view! { <a href=target aria-current=(path == target).then_some("page")>{label}</a> }
        })
        .into_iter()
        .collect_view();
        view! {
            {header(visit)}
            {alarms(visit)}
            <div class="console">
                <nav class="side" aria-label=words.nav>{links}</nav>
                <main id="content" class="console-page" tabindex="-1">{body()}</main>
            </div>
            {footer(visit)}
        }
    })
}

/// What the last form on a page led to: done, or refused.
pub(super) fn outcome(
    visit: &Visit,
    done: &[(&str, &'static str)],
    refused: &'static str,
) -> Option<AnyView> {
    if let Some(code) = visit.query("error").and_then(Code::parse) {
        let (_, advice) = visit.words.problem.of(code);
        return Some(notice("bad", "warning", format!("{refused} {advice}")).into_any());
    }
    let name = visit.query("done")?;
    let (_, text) = done.iter().find(|(known, _)| *known == name)?;
    Some(notice("ok", "check", *text).into_any())
}

/// Back to a list's first page, and on to its next; `address` may have a query.
pub(super) fn paging(
    visit: &Visit,
    address: &str,
    next: Option<&str>,
) -> Option<impl IntoView + use<>> {
    let words = &visit.words.console.panel;
    let first = visit
        .query("after")
        .map(|_| view! { <a class="button quiet small" href=address.to_owned()>{words.first}</a> });
    let next = next.map(|cursor| {
        let mark = if address.contains('?') { '&' } else { '?' };
        let address = format!("{address}{mark}after={}", routes::escape(cursor));
        view! { <a class="button quiet small" href=address>{words.more}</a> }
    });
    (first.is_some() || next.is_some()).then(|| view! { <p class="paging">{first}{next}</p> })
}

/// A button that is folded away with what it does, so that it is never pressed in
/// passing: the first click opens, the second does.
pub(super) fn confirmed(
    label: &'static str,
    hint: &'static str,
    action: &'static str,
    button: &'static str,
    field: (&'static str, String),
) -> impl IntoView {
    view! {
        <details class="confirm">
            <summary>{label}</summary>
            <form method="post" action=action>
                <input type="hidden" name=field.0 value=field.1/>
                <p class="hint">{hint}</p>
                <button type="submit" class="button bad small"><Icon name="warning"/>{button}</button>
            </form>
        </details>
    }
}

/// The live panels' texts in the visitor's language.
pub(super) fn panel_texts(visit: &Visit) -> PanelTexts {
    let words = &visit.words.console.panel;
    PanelTexts {
        as_of: words.as_of.to_owned(),
        pause: words.pause.to_owned(),
        resume: words.resume.to_owned(),
        stale: words.stale.to_owned(),
        answers: words.answers.to_owned(),
        away: words.away.to_owned(),
        unknown: words.unknown.to_owned(),
        lanes: words.lanes.to_owned(),
        workers: words.workers.to_owned(),
        sales: words.sales.to_owned(),
        lane: words.lane.to_owned(),
        stream_length: words.stream_length.to_owned(),
        lag: words.lag.to_owned(),
        in_flight: words.in_flight.to_owned(),
        pending: words.pending.to_owned(),
        dead: words.dead.to_owned(),
        oldest_pending: words.oldest_pending.to_owned(),
        worker: words.worker.to_owned(),
        idle: words.idle.to_owned(),
        alive: words.alive.to_owned(),
        gone: words.gone.to_owned(),
        voucher: words.voucher.to_owned(),
        state: words.state.to_owned(),
        total: words.total.to_owned(),
        left: words.left.to_owned(),
        confirmed: words.confirmed.to_owned(),
        conservation: words.conservation.to_owned(),
        balanced: words.balanced.to_owned(),
        drift: words.drift.to_owned(),
        entry: words.entry.to_owned(),
        order: words.order.to_owned(),
        user: words.user.to_owned(),
        deliveries: words.deliveries.to_owned(),
        no_lanes: words.no_lanes.to_owned(),
        no_workers: words.no_workers.to_owned(),
        no_sales: words.no_sales.to_owned(),
        no_pending: words.no_pending.to_owned(),
        states: visit.words.sale.states.map(str::to_owned).into(),
    }
}
