//! A button that copies what stands beside it.

use leptos::{html, prelude::*};

use super::Icon;

/// Copies `text`. Without WASM it is not there: the text can be selected all the same.
#[island]
pub fn CopyButton(
    /// What is copied.
    text: String,
    /// On the button.
    label: String,
    /// On the button once it is done.
    done: String,
) -> impl IntoView {
    let alive = RwSignal::new(false);
    let copied = RwSignal::new(false);
    let button = NodeRef::<html::Button>::new();
    #[cfg(feature = "hydrate")]
    Effect::new(move |_| alive.set(true));
    #[cfg(feature = "hydrate")]
    let copy = move |_| {
        let text = text.clone();
        leptos::task::spawn_local(async move {
            if browser::copy(&text).await {
                copied.set(true);
                crate::browser::sleep(4_000).await;
                copied.set(false);
            } else {
                browser::select(button);
            }
        });
    };
    #[cfg(not(feature = "hydrate"))]
    let copy = {
        let _ = text;
        |_| {}
    };
    view! {
        <button type="button" class="button quiet copy" data-testid="copy" node_ref=button
            hidden=move || !alive.get() on:click=copy>
            <Icon name=Signal::derive(move || if copied.get() { "check" } else { "copy" })/>
            <span role="status">{move || if copied.get() { done.clone() } else { label.clone() }}</span>
        </button>
    }
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::{html, prelude::*};
    use wasm_bindgen_futures::JsFuture;

    use crate::browser::window;

    /// Whether it is in the clipboard now. A page that is not served securely has none.
    pub(super) async fn copy(text: &str) -> bool {
        if !window().is_secure_context() {
            return false;
        }
        let written = window().navigator().clipboard().write_text(text);
        JsFuture::from(written).await.is_ok()
    }

    /// Selects the text before the button, for the person to copy.
    pub(super) fn select(button: NodeRef<html::Button>) {
        let before = button
            .get_untracked()
            .and_then(|button| button.closest("[data-copy]").ok().flatten())
            .and_then(|around| around.query_selector("output").ok().flatten());
        if let (Some(before), Ok(Some(selection))) = (before, window().get_selection()) {
            let _ = selection.select_all_children(&before);
        }
    }
}
