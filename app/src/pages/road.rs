//! The road to this design: what the latest run of `script/bench road` found, with its chart.
//!
//! The figures are those committed in `docs/road.json`, as the bench wrote them.

use std::sync::LazyLock;

use axum::response::Response;
use http::StatusCode;
use leptos::prelude::*;
use serde::Deserialize;

use super::{
    shell::{Head, page},
    visit::Visit,
};
use crate::words::{RoadWords, Run};

/// A run, as far as the page shows it.
#[derive(Deserialize)]
struct Latest {
    date: String,
    cores: usize,
    build: String,
    users: u32,
    stock: u32,
    concurrency: u32,
    contenders: Vec<Contender>,
}

#[derive(Deserialize)]
struct Contender {
    name: String,
    answers_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    orders_per_second: f64,
    oversold: usize,
    doubled: usize,
    doubled_by_faults: usize,
    doubled_after_kill: usize,
    lost_after_kill: usize,
    told_before_kill: usize,
    success_rate: f64,
    statements_per_order: f64,
    commands_per_order: f64,
    audit_passed: bool,
}

static LATEST: LazyLock<Latest> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../docs/road.json"))
        .expect("docs/road.json is as the bench wrote it, which a test checks")
});

/// `GET /road`
pub async fn road(visit: Visit) -> Response {
    let (words, latest) = (visit.lang.road(), &*LATEST);
    let head = Head {
        description: Some(words.lead.to_owned()),
        ..Head::plain(words.title)
    };
    let run = (words.run)(&Run {
        date: &latest.date,
        cores: latest.cores,
        build: &latest.build,
        users: latest.users,
        stock: latest.stock,
        concurrency: latest.concurrency,
    });
    page(&visit, StatusCode::OK, head, || {
        view! {
            <h1>{words.title}</h1>
            <p class="lead">{words.lead}</p>
            <p class="muted small">{run}</p>
            {chart(words, latest)}
            {table(words, latest)}
            <p class="muted small">{words.notes}</p>
            <h2>{words.why}</h2>
            {reasons(words, latest)}
        }
    })
}

/// How long a bar is, in percent of the chart: a decade is a fifth of it, from 10 on. The rest
/// is for the figure at its end.
fn length(value: f64) -> f64 {
    (value.max(10.0).log10() - 1.0).min(4.0) * 20.0
}

/// Two bars for each way. Lengths are percentages and texts are not scaled, so that it fits
/// every width.
fn chart(words: &'static RoadWords, latest: &'static Latest) -> impl IntoView {
    const ROW: usize = 58;
    let rows = latest.contenders.iter().enumerate().map(|(n, contender)| {
        let y = n * ROW;
        let bar = |class: &'static str, value: f64, top: usize| {
            let width = format!("{:.1}%", length(value));
            view! {
                <rect class=class x="0" y=y + top width=width.clone() height="11" rx="2"></rect>
                <text class="figure" x=width dx="6" y=y + top + 10>{format!("{value:.0}")}</text>
            }
        };
        view! {
            <text x="0" y=y + 14>{title(words, contender)}</text>
            {bar("answers", contender.answers_per_second, 20)}
            {bar("orders", contender.orders_per_second, 34)}
        }
    });
    view! {
        <figure class="road-chart">
            <figcaption>
                <span>{words.chart}</span>
                <span class="key" data-series="answers">{words.answers}</span>
                <span class="key" data-series="orders">{words.orders}</span>
            </figcaption>
            // The same figures stand in the table.
            <svg role="img" aria-label=words.chart width="100%" height=latest.contenders.len() * ROW>
                {rows.collect_view()}
            </svg>
        </figure>
    }
}

fn table(words: &'static RoadWords, latest: &'static Latest) -> impl IntoView {
    let number = |text: String| view! { <td class="number">{text}</td> };
    let rows = latest.contenders.iter().map(|contender| {
        let doubled =
            contender.doubled + contender.doubled_by_faults + contender.doubled_after_kill;
        let (tone, verdict) = match contender.audit_passed {
            true => ("ok", words.passes),
            false => ("bad", words.fails),
        };
        view! {
            <tr>
                <th scope="row">{title(words, contender)}</th>
                <td data-tone=tone>{verdict}</td>
                {number(format!("{:.0}", contender.answers_per_second))}
                {number(format!("{:.1} ms", contender.p50_ms))}
                {number(format!("{:.1} ms", contender.p99_ms))}
                {number(format!("{:.0}", contender.orders_per_second))}
                {number(contender.oversold.to_string())}
                {number(doubled.to_string())}
                {number((words.of)(contender.lost_after_kill, contender.told_before_kill))}
                {number(format!("{:.1} %", contender.success_rate * 100.0))}
                {number(format!("{:.1}", contender.statements_per_order))}
                {number(format!("{:.1}", contender.commands_per_order))}
            </tr>
        }
    });
    let heads = [
        words.answers,
        "p50",
        "p99",
        words.orders,
        words.oversold,
        words.doubled,
        words.lost,
        words.success,
        words.statements,
        words.commands,
    ]
    .map(|head| view! { <th scope="col" class="number">{head}</th> });
    view! {
        <div class="table" role="region" aria-label=words.table tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th scope="col">{words.contender}</th>
                        <th scope="col">{words.audit}</th>
                        {heads.into_iter().collect_view()}
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
    }
}

fn reasons(words: &'static RoadWords, latest: &'static Latest) -> impl IntoView {
    let rows = latest.contenders.iter().filter_map(|contender| {
        let (title, text) = words.contender(&contender.name)?;
        Some(view! {
            <li>
                <h3>{title}</h3>
                <p>{text}</p>
            </li>
        })
    });
    view! { <ol class="road">{rows.collect_view()}</ol> }
}

/// What a way is called; its own name where nobody has found words for it yet.
fn title(words: &RoadWords, contender: &'static Contender) -> &'static str {
    words
        .contender(&contender.name)
        .map_or(contender.name.as_str(), |(title, _)| title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Lang;

    #[test]
    fn every_way_of_the_latest_run_has_words_in_each_language() {
        assert_eq!(LATEST.contenders.len(), 18);
        for (lang, _) in Lang::ALL {
            for contender in &LATEST.contenders {
                let (title, text) = lang
                    .road()
                    .contender(&contender.name)
                    .unwrap_or_else(|| panic!("{} has no words", contender.name));
                assert!(!title.is_empty() && !text.is_empty(), "{}", contender.name);
            }
        }
    }

    #[test]
    fn the_latest_run_ends_with_a_product_that_passes() {
        let last = LATEST.contenders.last().expect("a run has contenders");
        assert!(last.name == "product" && last.audit_passed);
    }

    #[test]
    fn a_bar_leaves_room_for_its_figure() {
        assert_eq!(length(0.0), 0.0);
        assert_eq!(length(1e9), 80.0);
        assert!(length(100.0) < length(1_000.0));
    }
}
