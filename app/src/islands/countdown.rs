//! The countdown: to the opening, then to the end, on the server's clock.

use leptos::prelude::*;

use super::{Icon, SaleNow, packed::packed, sale_now::moving};
use crate::{
    countdown::{face, whole_seconds},
    figures::clock_time,
};

packed! {
    /// The countdown's texts.
    pub struct CountdownTexts {
        /// Before the opening.
        pub opens_in,
        /// In the minute before it.
        pub last_minute,
        /// While it is open.
        pub ends_in,
        /// Afterwards.
        pub ended,
        /// The word for days.
        pub day,
        /// The line that says what the clock is, with `{time}`.
        pub clock,
        /// The opening where the buyer is, with `{time}` and `{zone}`.
        pub your_time,
        /// What a listener hears at the marks of [`crate::countdown::ANNOUNCED`], as a list.
        pub announce,
        /// What a listener hears at the opening.
        pub opened,
    }
}

/// Which of the three the countdown is in, and how long that lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Open,
    Ended,
}

impl Phase {
    fn at(now_ms: i64, begin_ms: i64, end_ms: i64) -> (Self, i64) {
        if now_ms >= end_ms {
            (Self::Ended, 0)
        } else if now_ms >= begin_ms {
            (Self::Open, end_ms - now_ms)
        } else {
            (Self::Before, begin_ms - now_ms)
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Open => "open",
            Self::Ended => "ended",
        }
    }
}

/// Counts down to `begin_ms`, then to `end_ms`.
#[island]
pub fn Countdown(
    /// The sale as rendered, [packed](SaleNow::packed); its node's clock counts.
    sale: String,
    /// Whether it is a sale's own page (`1`): it speaks, and shows in the tab's title.
    main: String,
    /// The texts, [packed](CountdownTexts::packed).
    texts: String,
) -> impl IntoView {
    let rendered = SaleNow::unpacked(&sale);
    let (main, texts) = (!main.is_empty(), CountdownTexts::unpacked(&texts));
    // A sale's own page follows an end that an operator moves.
    let sale = if main {
        moving(&rendered)
    } else {
        RwSignal::new(rendered.clone())
    };
    let SaleNow {
        voucher_id, now_ms, ..
    } = rendered;
    let now = RwSignal::new(now_ms);
    let spoken = RwSignal::new(String::new());
    let local = RwSignal::new(String::new());
    let at = move || sale.with(|sale| Phase::at(now.get(), sale.begin_ms, sale.end_ms));
    let phase = Memo::new(move |_| at().0);
    let remaining = move || at().1;

    let label_texts = [
        texts.opens_in.clone(),
        texts.ends_in.clone(),
        texts.ended.clone(),
        texts.last_minute.clone(),
    ];
    let day = texts.day.clone();
    let shown = Memo::new(move |_| face(remaining(), &day));
    let last_minute =
        Memo::new(move |_| phase.get() == Phase::Before && whole_seconds(remaining()) <= 60);
    let label = move || {
        let index = if last_minute.get() {
            3
        } else {
            phase.get() as usize
        };
        label_texts[index].clone()
    };
    let icon = Signal::derive(move || match phase.get() {
        _ if last_minute.get() => "hourglass",
        Phase::Before => "clock",
        Phase::Open => "open",
        Phase::Ended => "flag",
    });
    let clock = texts.clock.clone();

    #[cfg(feature = "hydrate")]
    Effect::new({
        let texts = texts.clone();
        move |_| {
            let voucher_id = voucher_id.clone();
            browser::start(browser::Ticking {
                voucher_id,
                sale,
                now_ms,
                main,
                texts: texts.clone(),
                now,
                spoken,
                local,
                shown,
            });
        }
    });
    #[cfg(not(feature = "hydrate"))]
    let _ = voucher_id;

    view! {
        <div class="countdown" class:main=main data-phase=move || phase.get().name()
            data-size=move || match shown.with(|face| face.chars().count()) {
                0..=5 => "s",
                6..=8 => "m",
                _ => "l",
            }
            data-last=move || last_minute.get().then_some("")>
            <p class="countdown-label"><Icon name=icon/>{label}</p>
            <p class="countdown-face" data-testid="countdown" role="timer">{move || shown.get()}</p>
            {main.then(|| view! {
                <p class="countdown-clock">{move || clock.replace("{time}", &clock_time(now.get()))}</p>
                <p class="countdown-local">{move || if phase.get() == Phase::Before { local.get() } else { String::new() }}</p>
                <p class="visually-hidden" aria-live="polite">{move || spoken.get()}</p>
            })}
        </div>
    }
}

#[cfg(feature = "hydrate")]
mod browser {
    use js_sys::{Array, Date, Intl, Object, Reflect};
    use leptos::{prelude::*, task::spawn_local};
    use wasm_bindgen::JsValue;

    use super::{CountdownTexts, Phase};
    use crate::{
        api::sale::SaleState,
        browser::{clock, sleep, window},
        countdown::{announcement, until_next_face},
        islands::{SaleNow, packed::item},
    };

    pub(super) struct Ticking {
        pub(super) voucher_id: String,
        pub(super) sale: RwSignal<SaleNow>,
        pub(super) now_ms: i64,
        pub(super) main: bool,
        pub(super) texts: CountdownTexts,
        pub(super) now: RwSignal<i64>,
        pub(super) spoken: RwSignal<String>,
        pub(super) local: RwSignal<String>,
        pub(super) shown: Memo<String>,
    }

    pub(super) fn start(ticking: Ticking) {
        clock::start(Some(&ticking.voucher_id), ticking.now_ms);
        if ticking.main
            && let Some(text) = local_time(
                &ticking.texts.your_time,
                ticking.sale.get_untracked().begin_ms,
            )
        {
            ticking.local.set(text);
        }
        spawn_local(tick(ticking));
    }

    /// Shows each second when it comes. Computed from the time, never decremented.
    async fn tick(ticking: Ticking) {
        let title = window()
            .document()
            .map(|document| document.title())
            .unwrap_or_default();
        let mut before_ms = ticking.sale.get_untracked().begin_ms - ticking.now_ms;
        loop {
            let now_ms = clock::now_ms().unwrap_or(ticking.now_ms);
            ticking.now.set(now_ms);
            let sale = ticking.sale.get_untracked();
            let (phase, remaining) = Phase::at(now_ms, sale.begin_ms, sale.end_ms);
            if ticking.main {
                let to_begin_ms = sale.begin_ms - now_ms;
                if phase == Phase::Ended {
                    // Nothing opens any more.
                } else if before_ms > 0 && to_begin_ms <= 0 {
                    // One that is paused or not ready at its begin has not opened.
                    if sale.state.at(now_ms, sale.begin_ms, sale.end_ms) == SaleState::Open {
                        ticking.spoken.set(ticking.texts.opened.clone());
                    }
                } else if let Some(mark) = announcement(before_ms, to_begin_ms) {
                    ticking.spoken.set(item(&ticking.texts.announce, mark));
                }
                before_ms = to_begin_ms;
                if let Some(document) = window().document() {
                    match phase {
                        Phase::Before => document
                            .set_title(&format!("{} · {title}", ticking.shown.get_untracked())),
                        Phase::Open | Phase::Ended => document.set_title(&title),
                    }
                }
            }
            sleep(i32::try_from(until_next_face(remaining)).unwrap_or(1_000)).await;
        }
    }

    /// The opening in the device's zone, named; nothing where that is Beijing's offset.
    fn local_time(template: &str, ms: i64) -> Option<String> {
        const BEIJING: f64 = -480.0;
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds since 1970 fit into 53 bits"
        )]
        let date = Date::new(&JsValue::from_f64(ms as f64));
        if date.get_timezone_offset() == BEIJING {
            return None;
        }
        let language = window()
            .document()?
            .document_element()?
            .get_attribute("lang")?;
        // As the server writes English dates: the day first.
        let language = if language == "en" {
            "en-GB".to_owned()
        } else {
            language
        };
        let options = Object::new();
        for (name, value) in [
            ("dateStyle", "medium"),
            ("timeStyle", "medium"),
            ("hourCycle", "h23"),
        ] {
            Reflect::set(&options, &name.into(), &value.into()).ok()?;
        }
        let format = Intl::DateTimeFormat::new(&Array::of1(&language.into()), &options);
        let zone = Reflect::get(&format.resolved_options(), &"timeZone".into())
            .ok()?
            .as_string()?;
        let time = format
            .format()
            .call1(&JsValue::NULL, &date)
            .ok()?
            .as_string()?;
        Some(template.replace("{time}", &time).replace("{zone}", &zone))
    }
}
