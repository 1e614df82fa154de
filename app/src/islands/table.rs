//! A table of the console: sticky head, numbers to the right, and a word when it is empty.

use leptos::prelude::*;

/// A column's head.
pub(super) struct Head {
    name: String,
    number: bool,
}

/// A column of words.
pub(super) fn text(name: String) -> Head {
    Head {
        name,
        number: false,
    }
}

/// A column of numbers, aligned to the right.
pub(super) fn number(name: String) -> Head {
    Head { name, number: true }
}

/// The table called `label`; while `none` holds it says `empty` instead of rows.
pub(super) fn table<V: IntoView + 'static>(
    label: String,
    heads: impl IntoIterator<Item = Head>,
    rows: impl Fn() -> V + Send + 'static,
    none: Signal<bool>,
    empty: String,
) -> AnyView {
    let heads: Vec<_> = heads
        .into_iter()
        .map(
            |head| view! { <th scope="col" class=head.number.then_some("number")>{head.name}</th> },
        )
        .collect();
    view! {
        <div class="table" tabindex="0" role="region" aria-label=label>
            <table>
                <thead><tr>{heads}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
            {move || none.get().then(|| view! { <p class="empty">{empty.clone()}</p> })}
        </div>
    }
    .into_any()
}
