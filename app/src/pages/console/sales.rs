//! Sales: the list with what Redis holds, what can be done, and a form for a new one.

use std::collections::HashMap;

use axum::{extract::State, response::Response};
use leptos::{nonce::Nonce, prelude::*};
use seckill::{NewVoucher, Role, Standstill, VoucherForm, VoucherId, page::Page};

use super::{
    super::{
        problem,
        shell::{Bundle, notice},
        visit::Visit,
    },
    frame::{confirmed, frame, outcome},
};
use crate::{
    AppState,
    api::{ApiError, Code, sale::SaleState},
    caller::rank,
    figures::digits,
    format::{iso, money, short_date_time},
    islands::{Icon, state_icon},
    routes,
};

/// `GET /admin/sales`, `?after=`
pub async fn admin_sales(State(state): State<AppState>, mut visit: Visit) -> Response {
    match load(&state, &mut visit).await {
        Ok(loaded) => view_of(&visit, loaded),
        Err(error) => problem::page_of(&visit, &error),
    }
}

struct Loaded {
    sales: Vec<seckill::Sale>,
    standstills: HashMap<VoucherId, Standstill>,
    next: Option<String>,
    role: Role,
    /// Why the entered values were refused.
    complaint: Option<String>,
}

async fn load(state: &AppState, visit: &mut Visit) -> Result<Loaded, ApiError> {
    let user = visit.require_role(Role::Viewer).await?;
    let page = Page::parse(visit.query("after"), None)?;
    let sales = state.shop.sales(&page).await?;
    let paused: Vec<_> = sales
        .items
        .iter()
        .filter(|sale| sale.state == seckill::SaleState::Paused)
        .map(|sale| sale.voucher_id)
        .collect();
    let standstills = state.shop.standstills(&paused).await?;
    let now_ms = state.snapshot.borrow().overview.at_ms;
    Ok(Loaded {
        sales: sales.items,
        standstills,
        next: sales.next,
        role: user.role,
        complaint: complaint(visit, now_ms),
    })
}

/// The values of a refused form are in the address; parsing them again finds the same
/// complaint, so that no text of an address is ever shown as ours.
fn complaint(visit: &Visit, now_ms: i64) -> Option<String> {
    if visit.query("error").and_then(Code::parse) != Some(Code::Invalid) {
        return None;
    }
    let entered = |name| visit.query(name).unwrap_or_default();
    let form = VoucherForm {
        title: entered("title"),
        subtitle: entered("subtitle"),
        rules: entered("rules"),
        pay_cents: entered("pay_cents"),
        value_cents: entered("value_cents"),
        stock: entered("stock"),
        begin: entered("begin"),
        end: entered("end"),
        zone: entered("zone"),
    };
    match NewVoucher::parse(&form, now_ms) {
        Err(seckill::Error::Invalid(message)) => Some(message),
        _ => None,
    }
}

fn view_of(visit: &Visit, loaded: Loaded) -> Response {
    let words = &visit.words.console;
    let (sale, panel) = (&words.sale, &words.panel);
    frame(visit, words.sales, Bundle::None, || {
        let done = [
            ("created", sale.done_created),
            ("paused", sale.done_paused),
            ("resumed", sale.done_resumed),
            ("stock_added", sale.done_stock),
            ("ended", sale.done_ended),
        ];
        let message = match &loaded.complaint {
            Some(complaint) => Some(
                notice(
                    "bad",
                    "warning",
                    format!("{} {complaint}", sale.not_created),
                )
                .into_any(),
            ),
            None => outcome(visit, &done, sale.not_done),
        };
        let empty = loaded
            .sales
            .is_empty()
            .then(|| view! { <p class="empty">{sale.empty}</p> });
        let next = loaded.next.map(|next| {
            let address = format!("{}?after={}", routes::ADMIN_SALES, routes::escape(&next));
            view! { <p><a class="button quiet small" href=address>{panel.more}</a></p> }
        });
        let role = loaded.role;
        let standstills = loaded.standstills;
        let rows = loaded
            .sales
            .into_iter()
            .map(|row| {
                let standstill = standstills.get(&row.voucher_id);
                view_row(visit, row, standstill, role)
            })
            .collect_view();
        let may_create = rank(role) >= rank(Role::Admin);
        view! {
            <h1>{words.sales}</h1>
            {message}
            <div class="table" tabindex="0" role="region" aria-label=words.sales>
                <table>
                    <thead><tr>
                        <th scope="col">{panel.voucher}</th>
                        <th scope="col">{panel.state}</th>
                        <th scope="col">{sale.loaded}</th>
                        <th scope="col">{sale.window}</th>
                        <th scope="col" class="number">{sale.price}</th>
                        <th scope="col" class="number">{panel.left}</th>
                        <th scope="col" class="number">{panel.total}</th>
                        <th scope="col">{sale.actions}</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
                {empty}
            </div>
            {next}
            {may_create.then(|| view_form(visit))}
        }
    })
}

fn view_row(
    visit: &Visit,
    row: seckill::Sale,
    standstill: Option<&Standstill>,
    role: Role,
) -> impl IntoView + use<> {
    let words = &visit.words.console.sale;
    let id = row.voucher_id.to_string();
    let state = SaleState::from(row.state);
    let (tone, icon, word) = if row.loaded {
        ("ok", "check", words.yes)
    } else {
        ("warn", "hourglass", words.no)
    };
    view! {
        <tr>
            <th scope="row">
                <a href=routes::sale(&id)>{row.title}</a>
                <span class="muted code">" "{id.clone()}</span>
            </th>
            <td>
                <span class="badge small" data-state=state.as_str()>
                    <Icon name=Signal::stored(state_icon(state))/>{visit.words.sale.state(state)}
                </span>
                {standstill.map(|why| view_standstill(visit, &id, why))}
                {(state == SaleState::NotLoaded).then(|| view! { <p class="why" data-testid="why">{words.not_loaded}</p> })}
            </td>
            <td data-tone=tone data-testid="loaded"><span class="with-icon"><Icon name=Signal::stored(icon)/>{word}</span></td>
            <td>
                <time datetime=iso(row.begin_ms)>{short_date_time(row.begin_ms)}</time>" – "
                <time datetime=iso(row.end_ms)>{short_date_time(row.end_ms)}</time>
            </td>
            <td class="number">{money(row.pay_cents)}</td>
            <td class="number">{digits(row.stock)}</td>
            <td class="number">{digits(row.total)}</td>
            <td>{view_actions(visit, &id, state, role)}</td>
        </tr>
    }
}

/// Why a sale is paused, and what to do about it.
fn view_standstill(visit: &Visit, id: &str, why: &Standstill) -> impl IntoView + use<> {
    let words = &visit.words.console.sale;
    let time = |at_ms: i64| view! { <time datetime=iso(at_ms)>{short_date_time(at_ms)}</time> };
    let paused = why.paused_ms.map(|at_ms| {
        let who = why.paused_by.as_deref().unwrap_or("?");
        view! { <p>{(words.paused_by)(who)}" · "{time(at_ms)}</p> }
    });
    // The graver cause, when there were two.
    let came_back = match (why.drift_ms, why.lost_ms) {
        (Some(at_ms), _) => Some((words.came_back_drift, Some(at_ms))),
        (None, Some(at_ms)) => Some((words.came_back_lost, Some(at_ms))),
        (None, None) if paused.is_none() => Some((words.came_back_behind, None)),
        (None, None) => None,
    };
    let came_back = came_back.map(|(text, at_ms)| {
        let when = at_ms.map(|at_ms| view! { {time(at_ms)}" · " });
        view! { <p class="came-back">{when}{text}" "{words.look_then_resume}</p> }
    });
    view! {
        <div class="why" data-testid="why">
            {paused}
            {came_back}
            <a href=routes::reports_of(id)>{visit.words.console.reports}</a>
        </div>
    }
}

/// Only what would not be refused: the functions check the role themselves.
fn view_actions(
    visit: &Visit,
    id: &str,
    state: SaleState,
    role: Role,
) -> Option<impl IntoView + use<>> {
    let words = &visit.words.console.sale;
    let operates = rank(role) >= rank(Role::Operator) && state != SaleState::Ended;
    let id = id.to_owned();
    operates.then(|| {
        let pause = if state == SaleState::Paused {
            view! {
                <form method="post" action="/api/admin/resume_sale">
                    <input type="hidden" name="voucher_id" value=id.clone()/>
                    <button type="submit" class="button quiet small">{words.resume}</button>
                    <p class="hint">{words.resume_hint}</p>
                </form>
            }
            .into_any()
        } else {
            view! {
                <form method="post" action="/api/admin/pause_sale">
                    <input type="hidden" name="voucher_id" value=id.clone()/>
                    <button type="submit" class="button quiet small">{words.pause}</button>
                    <p class="hint">{words.pause_hint}</p>
                </form>
            }
            .into_any()
        };
        let admin = (rank(role) >= rank(Role::Admin)).then(|| {
            // A form that is sent twice has one id, so it adds once.
            let request_id = Nonce::new().to_string();
            let amount = format!("amount-{id}");
            view! {
                <form method="post" action="/api/admin/add_stock" class="inline">
                    <input type="hidden" name="voucher_id" value=id.clone()/>
                    <input type="hidden" name="request_id" value=request_id/>
                    <label for=amount.clone()>{words.amount}</label>
                    <input id=amount name="amount" type="number" min="1" max="10000000" required=true class="short"/>
                    <button type="submit" class="button quiet small">{words.add_stock}</button>
                </form>
                {confirmed(words.end_confirm, words.end_hint, "/api/admin/end_sale", words.end, ("voucher_id", id))}
            }
        });
        view! {
            <details class="manage">
                <summary>{words.manage}</summary>
                <div class="manage-box">{pause}{admin}</div>
            </details>
        }
    })
}

fn view_form(visit: &Visit) -> impl IntoView + use<> {
    let words = &visit.words.console.sale;
    let entered = |name: &str| visit.query(name).unwrap_or_default().to_owned();
    let field = |name: &'static str, label: &'static str, kind: &'static str, rule: Rule| {
        view! {
            <div class="field">
                <label for=name>{label}</label>
                <input id=name name=name type=kind value=entered(name) required=rule.required
                    maxlength=rule.maxlength min=rule.min max=rule.max step=rule.step
                    aria-describedby=rule.hint.map(|_| format!("{name}-hint"))/>
                {rule.hint.map(|hint| view! { <p class="hint" id=format!("{name}-hint")>{hint}</p> })}
            </div>
        }
    };
    let number = Rule {
        required: true,
        min: Some("0"),
        step: Some("1"),
        ..Rule::default()
    };
    let zone = match visit.query("zone") {
        Some(zone) => zone.to_owned(),
        None => "Asia/Shanghai".to_owned(),
    };
    let zones = ZONES
        .map(|zone| view! { <option value=zone></option> })
        .into_iter()
        .collect_view();
    view! {
        <section class="new-sale" aria-labelledby="new-sale">
            <h2 id="new-sale">{words.new_title}</h2>
            <p class="muted">{words.new_lead}</p>
            <form method="post" action="/api/admin/create_voucher" class="form grid">
                {field("title", words.title, "text", Rule { required: true, maxlength: Some("120"), ..Rule::default() })}
                {field("subtitle", words.subtitle, "text", Rule { maxlength: Some("120"), ..Rule::default() })}
                <div class="field wide">
                    <label for="rules">{words.rules}</label>
                    <textarea id="rules" name="rules" rows="3" maxlength="4000">{entered("rules")}</textarea>
                    {visit.query("cut").map(|_| view! { <p class="hint">{words.rules_left_out}</p> })}
                </div>
                {field("pay_cents", words.pay_cents, "number", Rule { hint: Some(words.cents_hint), ..number })}
                {field("value_cents", words.value_cents, "number", Rule { min: Some("1"), ..number })}
                {field("stock", words.stock, "number", Rule { min: Some("1"), max: Some("10000000"), ..number })}
                {field("begin", words.begin, "datetime-local", Rule { required: true, step: Some("1"), ..Rule::default() })}
                {field("end", words.end_time, "datetime-local", Rule { required: true, step: Some("1"), ..Rule::default() })}
                <div class="field">
                    <label for="zone">{words.zone}</label>
                    <input id="zone" name="zone" value=zone list="zones" required=true maxlength="64" aria-describedby="zone-hint"/>
                    <datalist id="zones">{zones}</datalist>
                    <p class="hint" id="zone-hint">{words.zone_hint}</p>
                </div>
                <p class="wide"><button type="submit" class="button primary" data-testid="create">{words.create}</button></p>
            </form>
        </section>
    }
}

/// What a browser checks of a field by itself; the server checks all of it again.
#[derive(Clone, Copy, Default)]
struct Rule {
    required: bool,
    maxlength: Option<&'static str>,
    min: Option<&'static str>,
    max: Option<&'static str>,
    step: Option<&'static str>,
    hint: Option<&'static str>,
}

/// Zones that are offered; any other IANA name may be typed.
const ZONES: [&str; 8] = [
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Asia/Singapore",
    "Asia/Kolkata",
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
];
