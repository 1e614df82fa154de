//! The console's live figures: stores, lanes, workers, sales.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    Icon, state_icon,
    table::{number, table, text},
};
use crate::{
    api::admin_queue::{Lane, Overview, SaleFigures, Worker},
    figures::{age, clock_time, count, digits},
};

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PanelScope {
    /// Stores and sales.
    Overview,
    /// Stores, lanes and workers.
    Queue,
}

/// The panels' texts, named after the table heads and states they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is named after the text it holds")]
pub struct PanelTexts {
    pub as_of: String,
    pub pause: String,
    pub resume: String,
    pub stale: String,
    pub answers: String,
    pub away: String,
    pub unknown: String,
    pub lanes: String,
    pub workers: String,
    pub sales: String,
    pub lane: String,
    pub stream_length: String,
    pub lag: String,
    pub in_flight: String,
    pub pending: String,
    pub dead: String,
    pub oldest_pending: String,
    pub worker: String,
    pub idle: String,
    pub alive: String,
    pub gone: String,
    pub voucher: String,
    pub state: String,
    pub total: String,
    pub left: String,
    pub confirmed: String,
    pub conservation: String,
    pub balanced: String,
    pub drift: String,
    pub entry: String,
    pub order: String,
    pub user: String,
    pub deliveries: String,
    pub no_lanes: String,
    pub no_workers: String,
    pub no_sales: String,
    pub no_pending: String,
    pub states: Vec<String>,
}

/// Whether a panel refreshes, and whether its last try worked.
#[derive(Clone, Copy)]
pub(crate) struct Refresh {
    /// The person wants to read.
    pub(crate) paused: RwSignal<bool>,
    /// The figures are older than they should be.
    pub(crate) stale: RwSignal<bool>,
}

impl Refresh {
    pub(super) fn new() -> Self {
        Self {
            paused: RwSignal::new(false),
            stale: RwSignal::new(false),
        }
    }
}

/// The line above a panel: the time of its figures, and a button that holds them still.
#[component]
pub(super) fn RefreshBar(
    refresh: Refresh,
    #[prop(into)] at_ms: Signal<i64>,
    texts: StoredValue<PanelTexts>,
) -> impl IntoView {
    view! {
        <div class="refresh">
            <p class="muted">{texts.read_value().as_of.clone()}" "<time>{move || clock_time(at_ms.get())}</time></p>
            <button type="button" class="button quiet small" data-testid="pause-refresh"
                aria-pressed=move || if refresh.paused.get() { "true" } else { "false" }
                on:click=move |_| refresh.paused.update(|paused| *paused = !*paused)>
                {move || texts.with_value(|texts| if refresh.paused.get() { texts.resume.clone() } else { texts.pause.clone() })}
            </button>
            <p class="note" role="status" data-tone=move || refresh.stale.get().then_some("warn")>
                {move || refresh.stale.get().then(|| texts.read_value().stale.clone())}
            </p>
        </div>
    }
}

/// The live panel.
#[island]
pub fn QueuePanel(
    /// The figures as rendered.
    overview: Overview,
    /// What to show of them.
    scope: PanelScope,
    /// The texts.
    texts: PanelTexts,
) -> impl IntoView {
    let texts = StoredValue::new(texts);
    let overview = RwSignal::new(overview);
    let refresh = Refresh::new();

    #[cfg(feature = "hydrate")]
    Effect::new(move |_| {
        use crate::{api::admin_queue::GetOverview, browser::panel};
        leptos::task::spawn_local(panel::poll::<GetOverview>(
            Vec::new(),
            refresh,
            move |fresh| overview.set(fresh),
        ));
    });

    view! {
        <RefreshBar refresh at_ms=Signal::derive(move || overview.get().at_ms) texts/>
        <Strip overview texts/>
        {match scope {
            PanelScope::Overview => view! { <Sales overview texts/> }.into_any(),
            PanelScope::Queue => view! { <Lanes overview texts/> <Workers overview texts/> }.into_any(),
        }}
    }
}

/// The stores and the sums over all lanes.
#[component]
fn Strip(overview: RwSignal<Overview>, texts: StoredValue<PanelTexts>) -> impl IntoView {
    let store = move |name: &'static str, answers: fn(&Overview) -> bool| {
        let up = Signal::derive(move || answers(&overview.get()));
        view! {
            <div class="tile" data-tone=move || if up.get() { "ok" } else { "bad" }>
                <dt>{name}</dt>
                <dd>
                    <Icon name=Signal::derive(move || if up.get() { "check" } else { "warning" })/>
                    {move || texts.with_value(|texts| if up.get() { texts.answers.clone() } else { texts.away.clone() })}
                </dd>
            </div>
        }
    };
    let sum = move |name: String, of: fn(&Lane) -> u64, tone: Option<&'static str>| {
        let total = move || overview.with(|overview| overview.lanes.iter().map(of).sum::<u64>());
        view! {
            <div class="tile" data-tone=move || tone.filter(|_| total() > 0)>
                <dt>{name}</dt><dd class="figure">{move || count(total())}</dd>
            </div>
        }
    };
    let names = texts.get_value();
    view! {
        <dl class="strip">
            {store("Redis", |overview| overview.redis)}
            {store("PostgreSQL", |overview| overview.postgres)}
            {sum(names.in_flight, |lane| lane.in_flight, None)}
            {sum(names.pending, |lane| lane.pending, None)}
            {sum(names.dead, |lane| lane.dead, Some("bad"))}
        </dl>
    }
}

#[component]
fn Lanes(overview: RwSignal<Overview>, texts: StoredValue<PanelTexts>) -> impl IntoView {
    let names = texts.get_value();
    let row = move |lane: Lane| {
        let (lag_known, lag) = match lane.lag {
            Some(lag) => (true, count(lag)),
            None => (false, texts.read_value().unknown.clone()),
        };
        view! {
            <tr>
                <th scope="row" class="number">{lane.lane.to_string()}</th>
                <td class="number">{count(lane.stream_length)}</td>
                <td class="number" class:muted=!lag_known data-testid="lag">{lag}</td>
                <td class="number">{count(lane.in_flight)}</td>
                <td class="number">{count(lane.pending)}</td>
                <td class="number" data-tone=(lane.dead > 0).then_some("bad")>{count(lane.dead)}</td>
                <td class="number">{lane.oldest_pending_ms.map_or_else(|| "–".to_owned(), age)}</td>
            </tr>
        }
    };
    let heads = [
        number(names.lane),
        number(names.stream_length),
        number(names.lag),
        number(names.in_flight),
        number(names.pending),
        number(names.dead),
        number(names.oldest_pending),
    ];
    let rows = move || overview.get().lanes.into_iter().map(row).collect_view();
    let none = Signal::derive(move || overview.with(|overview| overview.lanes.is_empty()));
    view! {
        <h2>{names.lanes.clone()}</h2>
        {table(names.lanes, heads, rows, none, names.no_lanes)}
    }
}

#[component]
fn Workers(overview: RwSignal<Overview>, texts: StoredValue<PanelTexts>) -> impl IntoView {
    let names = texts.get_value();
    let row = move |worker: Worker| {
        let (tone, icon) = if worker.alive {
            ("ok", "check")
        } else {
            ("warn", "warning")
        };
        let word = texts.with_value(|texts| {
            if worker.alive {
                texts.alive.clone()
            } else {
                texts.gone.clone()
            }
        });
        view! {
            <tr>
                <th scope="row" class="code">{worker.name}</th>
                <td class="number">{worker.lane.to_string()}</td>
                <td data-tone=tone><span class="with-icon"><Icon name=Signal::stored(icon)/>{word}</span></td>
                <td class="number">{count(worker.pending)}</td>
                <td class="number">{age(worker.idle_ms)}</td>
            </tr>
        }
    };
    let heads = [
        text(names.worker),
        number(names.lane),
        text(names.state),
        number(names.pending),
        number(names.idle),
    ];
    let rows = move || overview.get().workers.into_iter().map(row).collect_view();
    let none = Signal::derive(move || overview.with(|overview| overview.workers.is_empty()));
    view! {
        <h2>{names.workers.clone()}</h2>
        {table(names.workers, heads, rows, none, names.no_workers)}
    }
}

#[component]
fn Sales(overview: RwSignal<Overview>, texts: StoredValue<PanelTexts>) -> impl IntoView {
    let names = texts.get_value();
    let row = move |sale: SaleFigures| {
        let (tone, icon) = if sale.balanced {
            ("ok", "check")
        } else {
            ("bad", "warning")
        };
        let word = texts.with_value(|texts| {
            if sale.balanced {
                texts.balanced.clone()
            } else {
                texts.drift.clone()
            }
        });
        let state = texts.with_value(|texts| {
            texts
                .states
                .get(sale.state as usize)
                .cloned()
                .unwrap_or_default()
        });
        view! {
            <tr>
                <th scope="row"><a href=crate::routes::sale(&sale.voucher_id)>{sale.title}</a></th>
                <td><span class="badge small" data-state=sale.state.as_str()>
                    <Icon name=Signal::stored(state_icon(sale.state))/>{state}
                </span></td>
                <td class="number">{digits(sale.total)}</td>
                <td class="number">{digits(sale.left)}</td>
                <td class="number">{digits(sale.in_flight)}</td>
                <td class="number" data-tone=(sale.dead > 0).then_some("bad")>{digits(sale.dead)}</td>
                <td class="number">{digits(sale.confirmed)}</td>
                <td data-tone=tone><span class="with-icon"><Icon name=Signal::stored(icon)/>{word}</span></td>
            </tr>
        }
    };
    let heads = [
        text(names.voucher),
        text(names.state),
        number(names.total),
        number(names.left),
        number(names.in_flight),
        number(names.dead),
        number(names.confirmed),
        text(names.conservation),
    ];
    let rows = move || overview.get().sales.into_iter().map(row).collect_view();
    let none = Signal::derive(move || overview.with(|overview| overview.sales.is_empty()));
    view! {
        <h2>{names.sales.clone()}</h2>
        {table(names.sales, heads, rows, none, names.no_sales)}
    }
}
