//! Reconciliation: what the reconciler found and did, sale by sale.

use axum::{extract::State, response::Response};
use leptos::prelude::*;
use seckill::{Role, page::Page};

use super::{
    super::{problem, shell::Bundle, visit::Visit},
    frame::{frame, paging},
};
use crate::{
    AppState,
    api::{
        ApiError, Listed,
        admin_report::{Report, report_page},
    },
    figures::digits,
    format::{iso, table_time},
    islands::Icon,
    routes,
};

/// `GET /admin/reports`, `?voucher_id=`, `?after=`
pub async fn admin_reports(State(state): State<AppState>, mut visit: Visit) -> Response {
    match load(&state, &mut visit).await {
        Ok(page) => view_of(&visit, page),
        Err(error) => problem::page_of(&visit, &error),
    }
}

async fn load(state: &AppState, visit: &mut Visit) -> Result<Listed<Report>, ApiError> {
    visit.require_role(Role::Viewer).await?;
    let page = Page::parse(visit.query("after"), None)?;
    report_page(state, visit.query("voucher_id"), &page).await
}

fn view_of(visit: &Visit, page: Listed<Report>) -> Response {
    let words = &visit.words.console;
    let (report, panel) = (&words.report, &words.panel);
    frame(visit, words.reports, Bundle::None, || {
        let voucher = visit.query("voucher_id").map(|id| id.trim().to_owned());
        let empty = page.items.is_empty().then(|| {
            let why = match (visit.query("after"), &voucher) {
                (Some(_), _) => panel.no_more,
                (None, Some(_)) => report.empty_voucher,
                (None, None) => report.empty,
            };
            view! { <p class="empty">{why}</p> }
        });
        let rows = page
            .items
            .into_iter()
            .map(|row| view_row(visit, row))
            .collect_view();
        let address = match &voucher {
            Some(id) => routes::reports_of(id),
            None => routes::ADMIN_REPORTS.to_owned(),
        };
        view! {
            <h1>{words.reports}</h1>
            <p class="muted">{report.lead}</p>
            {filter(visit, voucher)}
            <div class="table" tabindex="0" role="region" aria-label=words.reports>
                <table>
                    <thead><tr>
                        <th scope="col">{report.at}</th>
                        <th scope="col">{panel.voucher}</th>
                        <th scope="col">{report.verdict}</th>
                        <th scope="col">{report.action}</th>
                        <th scope="col" class="number">{report.rows}</th>
                        <th scope="col" class="number">{panel.confirmed}</th>
                        <th scope="col" class="number">{panel.in_flight}</th>
                        <th scope="col" class="number">{panel.dead}</th>
                        <th scope="col" class="number">{panel.left}</th>
                        <th scope="col" class="number">{panel.total}</th>
                        <th scope="col" class="number">{report.epoch}</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
                {empty}
            </div>
            {paging(visit, &address, page.next.as_deref())}
        }
    })
}

fn view_row(visit: &Visit, row: Report) -> impl IntoView + use<> {
    let words = &visit.words.console;
    // What was only acted upon was not weighed; its counters still add up, or not.
    let sum = row.left + row.in_flight + row.dead + row.confirmed;
    let (tone, icon, word) = if row.drift || sum != row.total {
        ("bad", "warning", words.panel.drift)
    } else {
        ("ok", "check", words.panel.balanced)
    };
    let action = match words.report.action_named(&row.action) {
        Some((word, hint)) => {
            view! { <strong>{word}</strong><p class="muted">{hint}</p> }.into_any()
        }
        None => row.action.clone().into_any(),
    };
    view! {
        <tr>
            <th scope="row"><time datetime=iso(row.at_ms)>{table_time(row.at_ms)}</time></th>
            <td class="code"><a href=routes::reports_of(&row.voucher_id)>{row.voucher_id.clone()}</a></td>
            <td data-tone=tone data-testid="verdict">
                <span class="with-icon"><Icon name=Signal::stored(icon)/>{word}</span>
            </td>
            <td class="prose" data-testid="action">{action}</td>
            <td class="number">{digits(row.rows)}</td>
            <td class="number">{digits(row.confirmed)}</td>
            <td class="number">{digits(row.in_flight)}</td>
            <td class="number">{digits(row.dead)}</td>
            <td class="number">{digits(row.left)}</td>
            <td class="number">{digits(row.total)}</td>
            <td class="number">{digits(row.epoch)}</td>
        </tr>
    }
}

/// Which sale: by its number, as the sales page shows it.
fn filter(visit: &Visit, chosen: Option<String>) -> impl IntoView + use<> {
    let words = &visit.words.console.panel;
    let all = chosen.is_some().then(|| {
        view! { <a class="button quiet small" href=routes::ADMIN_REPORTS>{words.everything}</a> }
    });
    view! {
        <form method="get" action=routes::ADMIN_REPORTS class="filter">
            <label for="voucher_id">{words.voucher}</label>
            <input id="voucher_id" name="voucher_id" value=chosen.unwrap_or_default() class="short"
                inputmode="numeric" pattern="[0-9]*" maxlength="19" autocomplete="off"/>
            <button type="submit" class="button quiet small">{words.filter}</button>
            {all}
        </form>
    }
}
