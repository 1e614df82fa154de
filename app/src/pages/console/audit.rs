//! The audit log: who did what to which sale or dead letter.

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
        admin_report::{AuditEntry, audit_page},
    },
    figures::digits,
    format::{iso, table_time},
    routes,
    words::AuditWords,
};

/// `GET /admin/audit`, `?after=`
pub async fn admin_audit(State(state): State<AppState>, mut visit: Visit) -> Response {
    match load(&state, &mut visit).await {
        Ok(page) => view_of(&visit, page),
        Err(error) => problem::page_of(&visit, &error),
    }
}

async fn load(state: &AppState, visit: &mut Visit) -> Result<Listed<AuditEntry>, ApiError> {
    visit.require_role(Role::Viewer).await?;
    let page = Page::parse(visit.query("after"), None)?;
    audit_page(state, &page).await
}

fn view_of(visit: &Visit, page: Listed<AuditEntry>) -> Response {
    let words = &visit.words.console;
    let audit = &words.audit;
    frame(visit, words.audit_log, Bundle::None, || {
        let empty = page.items.is_empty().then(|| {
            let why = match visit.query("after") {
                Some(_) => words.panel.no_more,
                None => audit.empty,
            };
            view! { <p class="empty">{why}</p> }
        });
        let rows = page
            .items
            .into_iter()
            .map(|entry| view_row(visit, entry))
            .collect_view();
        view! {
            <h1>{words.audit_log}</h1>
            <p class="muted">{audit.lead}</p>
            <div class="table" tabindex="0" role="region" aria-label=words.audit_log>
                <table>
                    <thead><tr>
                        <th scope="col">{audit.at}</th>
                        <th scope="col">{audit.who}</th>
                        <th scope="col">{audit.what}</th>
                        <th scope="col">{audit.subject}</th>
                        <th scope="col">{audit.detail}</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
                {empty}
            </div>
            {paging(visit, routes::ADMIN_AUDIT, page.next.as_deref())}
        }
    })
}

fn view_row(visit: &Visit, entry: AuditEntry) -> impl IntoView + use<> {
    let words = &visit.words.console;
    let what = words
        .audit
        .action_named(&entry.action)
        .map_or_else(|| entry.action.clone(), str::to_owned);
    let subject = match entry.subject.split_once(' ') {
        Some(("voucher", id)) => view! {
            {words.panel.voucher}" "<a class="code" href=routes::reports_of(id)>{id.to_owned()}</a>
        }
        .into_any(),
        _ => match entry.subject.strip_prefix("dead letter ") {
            Some(id) => {
                view! { {words.audit.dead_letter}" "<span class="code">{id.to_owned()}</span> }
                    .into_any()
            }
            None => entry.subject.into_any(),
        },
    };
    view! {
        <tr>
            <th scope="row"><time datetime=iso(entry.at_ms)>{table_time(entry.at_ms)}</time></th>
            <td title=entry.user_id>{entry.username}</td>
            <td>{what}</td>
            <td>{subject}</td>
            <td>{detail(&words.audit, &entry.action, entry.detail)}</td>
        </tr>
    }
}

/// The value in the unit that its action has; as it was written for any other.
fn detail(words: &AuditWords, action: &str, value: String) -> String {
    let number = || value.parse::<i64>().ok();
    match action {
        "create" | "stock" => number().map(|units| (words.units)(&digits(units))),
        "end" => number().map(table_time),
        // They have none.
        "pause" | "resume" => Some(String::new()),
        _ => words.result_named(&value).map(str::to_owned),
    }
    .unwrap_or(value)
}
