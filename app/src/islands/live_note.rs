//! What a sale's page says while it can't show what is: no connection, a shop that asks to
//! wait, a session that has ended, a sale that is gone, a page that is too old.

use leptos::prelude::*;

#[cfg(feature = "hydrate")]
use super::SaleNow;
use super::{Icon, packed::packed};
use crate::figures::clock_time;

packed! {
    /// The note's texts; `{time}` is when the page last knew, `{seconds}` how long it waits.
    pub struct LiveTexts {
        /// There is no connection.
        pub offline,
        /// The shop does not answer.
        pub away,
        /// The shop asks to ask less often.
        pub too_many,
        /// The sale is not there any more.
        pub gone,
        /// The link out of that.
        pub gone_link,
        /// The answers can't be read any more.
        pub updated,
        /// The link out of that.
        pub reload,
        /// The session has ended.
        pub signed_out,
        /// The link out of that.
        pub sign_in,
    }
}

/// Why the page can't show what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "only a poll in the browser meets trouble")
)]
pub(crate) enum Trouble {
    /// It can.
    None,
    /// There is no connection.
    Offline,
    /// The shop does not answer; asked again after so many milliseconds.
    Away(i32),
    /// The shop asks to wait so many milliseconds.
    TooMany(i32),
    /// There is no such sale any more.
    Gone,
    /// The shop speaks another language than this page.
    Updated,
}

impl Trouble {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Offline => "offline",
            Self::Away(_) => "unavailable",
            Self::TooMany(_) => "too_many",
            Self::Gone => "gone",
            Self::Updated => "updated",
        }
    }
}

/// The notes above the countdown.
#[island]
pub fn LiveNote(
    /// The sale as rendered, [packed](SaleNow::packed).
    sale: String,
    /// Whether somebody was signed in then (`1`).
    signed_in: String,
    /// Where to sign in and come back from.
    login: String,
    /// The texts, [packed](LiveTexts::packed).
    texts: String,
) -> impl IntoView {
    let texts = LiveTexts::unpacked(&texts);
    let trouble = RwSignal::new(Trouble::None);
    let known_ms = RwSignal::new(0_i64);
    let signed_out = RwSignal::new(false);
    #[cfg(feature = "hydrate")]
    {
        let rendered = SaleNow::unpacked(&sale);
        let watched = !signed_in.is_empty();
        Effect::new(move |_| {
            crate::browser::sale::follow(&rendered);
            crate::browser::sale::tell(trouble, known_ms);
            if watched {
                crate::browser::session::watch(rendered.begin_ms, signed_out);
            }
        });
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (sale, signed_in);

    let LiveTexts {
        offline,
        away,
        too_many,
        gone,
        gone_link,
        updated,
        reload: reload_word,
        signed_out: signed_out_text,
        sign_in,
    } = texts;
    let text = move || {
        let (template, wait) = match trouble.get() {
            Trouble::None => return String::new(),
            Trouble::Offline => (&offline, 0),
            Trouble::Away(wait) => (&away, wait),
            Trouble::TooMany(wait) => (&too_many, wait),
            Trouble::Gone => (&gone, 0),
            Trouble::Updated => (&updated, 0),
        };
        template
            .replace("{time}", &clock_time(known_ms.get()))
            .replace("{seconds}", &((wait + 999) / 1_000).to_string())
    };
    // The one thing to do about it, where there is one; the rest ends by itself.
    let link = move || match trouble.get() {
        Trouble::Gone => Some((crate::routes::HOME.to_owned(), gone_link.clone())),
        // An empty address is this page.
        Trouble::Updated => Some((String::new(), reload_word.clone())),
        _ => None,
    };
    let icon = Signal::derive(move || match trouble.get() {
        Trouble::Offline => "offline",
        Trouble::Gone => "empty",
        Trouble::Updated => "warning",
        _ => "hourglass",
    });
    view! {
        <div class="live" role="status">
            <p class="note" data-tone="warn" data-testid="trouble" data-trouble=move || trouble.get().name()
                hidden=move || trouble.get() == Trouble::None>
                <Icon name=icon/>
                <span>{text}" "{move || link().map(|(to, word)| view! { <a href=to>{word}</a> })}</span>
            </p>
            <p class="note" data-tone="warn" data-testid="signed-out" hidden=move || !signed_out.get()>
                <Icon name="lock"/>
                <span>{signed_out_text}" "<a href=login>{sign_in}</a></span>
            </p>
        </div>
    }
}
