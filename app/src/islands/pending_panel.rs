//! Entries that a worker holds, live.

use leptos::prelude::*;

use super::{
    PanelTexts,
    queue_panel::{Refresh, RefreshBar},
    table::{number, table, text},
};
use crate::{
    api::{Listed, admin_queue::Pending},
    figures::{age, count},
};

/// The live list of pending entries; one page of it, as the address asks for.
#[island]
pub fn PendingPanel(
    /// The entries as rendered.
    page: Listed<Pending>,
    /// The server's clock when they were read.
    now_ms: i64,
    /// The lane that is asked for, or nothing for all.
    lane: String,
    /// The cursor that is asked for, or nothing for the beginning.
    after: String,
    /// The texts.
    texts: PanelTexts,
) -> impl IntoView {
    let texts = StoredValue::new(texts);
    let items = RwSignal::new(page.items);
    let at_ms = RwSignal::new(now_ms);
    let refresh = Refresh::new();

    #[cfg(feature = "hydrate")]
    Effect::new(move |_| {
        use crate::{
            api::admin_queue::GetPending,
            browser::{clock, panel},
        };
        clock::start(None, now_ms);
        let fields = vec![("lane", lane.clone()), ("after", after.clone())];
        leptos::task::spawn_local(panel::poll::<GetPending>(fields, refresh, move |fresh| {
            at_ms.set(clock::now_ms().unwrap_or(now_ms));
            items.set(fresh.items);
        }));
    });
    #[cfg(not(feature = "hydrate"))]
    let _ = (lane, after);

    let row = |entry: Pending| {
        view! {
            <tr>
                <th scope="row" class="code">{entry.entry_id}</th>
                <td class="code">{entry.order_id}</td>
                <td class="code">{entry.voucher_id}</td>
                <td class="code">{entry.user_id}</td>
                <td class="code">{entry.consumer}</td>
                <td class="number">{age(entry.idle_ms)}</td>
                <td class="number" data-tone=(entry.deliveries > 1).then_some("warn")>{count(entry.deliveries)}</td>
            </tr>
        }
    };
    let names = texts.get_value();
    let heads = [
        text(names.entry),
        text(names.order),
        text(names.voucher),
        text(names.user),
        text(names.worker),
        number(names.idle),
        number(names.deliveries),
    ];
    let rows = move || items.get().into_iter().map(row).collect_view();
    let none = Signal::derive(move || items.with(Vec::is_empty));
    view! {
        <RefreshBar refresh at_ms texts/>
        {table(names.pending, heads, rows, none, names.no_pending)}
    }
}
