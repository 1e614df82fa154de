//! The strip on top of every page of the console: what nobody may overlook.
//!
//! It is there for as long as its cause is: an unsafe ground that was accepted, a process
//! that does not sell, a Redis that came back behind what was seen.

use leptos::prelude::*;

use super::super::visit::Visit;
use crate::{islands::Icon, routes};

/// The strip, or nothing when there is nothing to tell.
pub(super) fn alarms(visit: &Visit) -> Option<impl IntoView + use<>> {
    let words = &visit.words.console.alarm;
    let shop = &visit.state.shop;
    let ground = visit.state.ground.borrow().clone();
    let accepted = ground.accepted.then(|| {
        // The findings name settings and their values: they are the same in every language.
        let findings = ground
            .findings
            .iter()
            .map(|finding| view! { <li lang="en">{finding.clone()}</li> })
            .collect_view();
        let text = if ground.findings.is_empty() {
            words.accepted_nothing
        } else {
            words.accepted
        };
        view! { <div data-testid="unsafe"><p>{text}</p><ul>{findings}</ul></div> }
    });
    let still = (!shop.is_selling())
        .then(|| view! { <p data-testid="not-selling">{words.not_selling}</p> });
    let behind = Some(shop.alarms()).filter(|times| *times > 0).map(|times| {
        view! {
            <p data-testid="behind">
                {(words.behind)(times)}" "<a href=routes::ADMIN_REPORTS>{visit.words.console.reports}</a>
            </p>
        }
    });
    let any = accepted.is_some() || still.is_some() || behind.is_some();
    any.then(|| {
        view! {
            <section class="alarms" data-tone="bad" aria-label=words.title data-testid="alarms">
                <Icon name="warning"/>
                <div>{accepted}{still}{behind}</div>
            </section>
        }
    })
}
