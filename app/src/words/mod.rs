//! Every text of every page, in each language.
//!
//! A language is one static of [`Words`], so a missing text does not compile. Texts
//! with a number in them are functions, or templates with `{left}` and the like where an
//! island fills them in (a function cannot travel to the browser).

mod console;
mod en;
mod road;
mod zh;

pub(crate) use console::{AuditWords, ConsoleWords};
pub(crate) use road::{RoadWords, Run};

use crate::api::{Code, buy::Outcome, order::OrderState, sale::SaleState};

/// The languages there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lang {
    /// English.
    En,
    /// Simplified Chinese.
    Zh,
}

impl Lang {
    /// All, each named in itself.
    pub(crate) const ALL: [(Self, &'static str); 2] = [(Self::En, "English"), (Self::Zh, "中文")];

    /// The value of the cookie and of the form.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The language called `text`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .map(|(lang, _)| lang)
            .find(|lang| lang.as_str() == text)
    }

    /// Its texts.
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::En => &en::WORDS,
            Self::Zh => &zh::WORDS,
        }
    }

    /// The person's own choice, else the first language of `accept` (Accept-Language)
    /// that there is, by its weight; English when there is none.
    pub(crate) fn choose(cookie: Option<&str>, accept: Option<&str>) -> Self {
        if let Some(lang) = cookie.and_then(Self::parse) {
            return lang;
        }
        let mut best = (Self::En, 0.0);
        for item in accept.unwrap_or_default().split(',') {
            let mut parts = item.split(';');
            let tag = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
            let weight = parts
                .find_map(|part| part.trim().strip_prefix("q="))
                .map_or(1.0, |q| q.trim().parse::<f32>().unwrap_or(0.0));
            let lang = tag.split('-').next().and_then(Self::parse);
            if let Some(lang) = lang.filter(|_| weight > best.1) {
                best = (lang, weight);
            }
        }
        best.0
    }
}

/// One language's texts.
pub(crate) struct Words {
    /// `lang` of the page.
    pub(crate) html_lang: &'static str,
    pub(crate) shell: ShellWords,
    pub(crate) sales: SalesWords,
    pub(crate) sale: SaleWords,
    pub(crate) live: LiveWords,
    pub(crate) answers: AnswerWords,
    pub(crate) order: OrderWords,
    pub(crate) account: AccountWords,
    pub(crate) problem: ProblemWords,
    pub(crate) console: ConsoleWords,
}

/// What surrounds every page.
pub(crate) struct ShellWords {
    pub(crate) site: &'static str,
    pub(crate) skip: &'static str,
    pub(crate) main_nav: &'static str,
    pub(crate) sales: &'static str,
    pub(crate) orders: &'static str,
    pub(crate) console: &'static str,
    pub(crate) sign_in: &'static str,
    pub(crate) sign_out: &'static str,
    pub(crate) signed_in_as: fn(&str) -> String,
    pub(crate) language: &'static str,
    pub(crate) theme: &'static str,
    pub(crate) theme_auto: &'static str,
    pub(crate) theme_light: &'static str,
    pub(crate) theme_dark: &'static str,
    pub(crate) promise: &'static str,
    pub(crate) more: &'static str,
}

/// The list of sales.
pub(crate) struct SalesWords {
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) opens_at: fn(&str) -> String,
    pub(crate) open_until: fn(&str) -> String,
    pub(crate) ended_at: fn(&str) -> String,
}

/// A sale's page.
pub(crate) struct SaleWords {
    pub(crate) back: &'static str,
    pub(crate) price: &'static str,
    pub(crate) face_value: &'static str,
    pub(crate) saved: fn(&str) -> String,
    pub(crate) description: fn(&str, &str) -> String,
    pub(crate) states: [&'static str; 6],
    pub(crate) gone: &'static str,
    pub(crate) opens_in: &'static str,
    pub(crate) last_minute: &'static str,
    pub(crate) ends_in: &'static str,
    pub(crate) ended: &'static str,
    pub(crate) day: &'static str,
    pub(crate) clock: &'static str,
    pub(crate) your_time: &'static str,
    pub(crate) announce: [&'static str; 5],
    pub(crate) opened: &'static str,
    pub(crate) left: &'static str,
    pub(crate) left_label: &'static str,
    pub(crate) buy: &'static str,
    pub(crate) buy_waiting: &'static str,
    pub(crate) buy_sending: &'static str,
    pub(crate) buy_closed: &'static str,
    pub(crate) one_each: &'static str,
    pub(crate) sign_in_first: &'static str,
    pub(crate) sign_in_link: &'static str,
    pub(crate) rules: &'static str,
    pub(crate) no_rules: &'static str,
    pub(crate) when: fn(&str, &str) -> String,
    pub(crate) loading: &'static str,
    pub(crate) not_live: &'static str,
    pub(crate) reload: &'static str,
    pub(crate) held: &'static str,
    pub(crate) held_link: &'static str,
}

/// What a sale's page says while it can't show what is.
pub(crate) struct LiveWords {
    pub(crate) offline: &'static str,
    pub(crate) away: &'static str,
    pub(crate) too_many: &'static str,
    pub(crate) gone: &'static str,
    pub(crate) gone_link: &'static str,
    pub(crate) updated: &'static str,
    pub(crate) reload: &'static str,
    pub(crate) signed_out: &'static str,
    pub(crate) sign_in: &'static str,
}

/// Every answer to a press of the button.
pub(crate) struct AnswerWords {
    pub(crate) admitted: &'static str,
    pub(crate) already_ordered: &'static str,
    pub(crate) sold_out: &'static str,
    pub(crate) not_started: &'static str,
    pub(crate) ended: &'static str,
    pub(crate) paused: &'static str,
    pub(crate) not_loaded: &'static str,
    pub(crate) wait: &'static str,
    pub(crate) offline: &'static str,
    pub(crate) gave_up: &'static str,
}

/// Orders.
pub(crate) struct OrderWords {
    pub(crate) list_title: &'static str,
    pub(crate) list_empty: &'static str,
    pub(crate) list_empty_link: &'static str,
    pub(crate) title: &'static str,
    pub(crate) number: &'static str,
    pub(crate) copy_hint: &'static str,
    pub(crate) copy: &'static str,
    pub(crate) copied: &'static str,
    pub(crate) steps: [&'static str; 3],
    pub(crate) states: [&'static str; 3],
    pub(crate) headlines: [&'static str; 3],
    pub(crate) next: [&'static str; 3],
    pub(crate) slow: &'static str,
    pub(crate) reload: &'static str,
    pub(crate) away: &'static str,
    pub(crate) to_sale: &'static str,
    pub(crate) to_orders: &'static str,
    pub(crate) beijing: &'static str,
    pub(crate) no_script: &'static str,
}

/// Sign in and register.
pub(crate) struct AccountWords {
    pub(crate) login_title: &'static str,
    pub(crate) login_lead: &'static str,
    pub(crate) register_title: &'static str,
    pub(crate) register_lead: &'static str,
    pub(crate) username: &'static str,
    pub(crate) username_hint: &'static str,
    pub(crate) password: &'static str,
    pub(crate) password_hint: &'static str,
    pub(crate) to_register: &'static str,
    pub(crate) to_login: &'static str,
    pub(crate) wrong: &'static str,
    pub(crate) taken: &'static str,
    pub(crate) invalid: &'static str,
}

/// What a refusal means, by its code: a title and what to do.
pub(crate) struct ProblemWords {
    pub(crate) invalid: (&'static str, &'static str),
    pub(crate) unauthenticated: (&'static str, &'static str),
    pub(crate) forbidden: (&'static str, &'static str),
    pub(crate) cross_site: (&'static str, &'static str),
    pub(crate) not_found: (&'static str, &'static str),
    pub(crate) conflict: (&'static str, &'static str),
    pub(crate) too_large: (&'static str, &'static str),
    pub(crate) too_many: (&'static str, &'static str),
    pub(crate) unavailable: (&'static str, &'static str),
    pub(crate) internal: (&'static str, &'static str),
    pub(crate) request: &'static str,
    pub(crate) home: &'static str,
}

impl SaleWords {
    /// The word for a state.
    pub(crate) fn state(&self, state: SaleState) -> &'static str {
        self.states[match state {
            SaleState::NotLoaded => 0,
            SaleState::Ended => 1,
            SaleState::Paused => 2,
            SaleState::Scheduled => 3,
            SaleState::SoldOut => 4,
            SaleState::Open => 5,
        }]
    }
}

impl AnswerWords {
    /// The text of a purchase's outcome.
    pub(crate) fn outcome(&self, outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Admitted => self.admitted,
            Outcome::AlreadyOrdered => self.already_ordered,
            Outcome::SoldOut => self.sold_out,
            Outcome::NotStarted => self.not_started,
            Outcome::Ended => self.ended,
            Outcome::Paused => self.paused,
            Outcome::NotLoaded => self.not_loaded,
        }
    }
}

impl OrderWords {
    /// Which of the three texts belongs to a state.
    pub(crate) fn index(state: OrderState) -> usize {
        match state {
            OrderState::Queued => 0,
            OrderState::Confirmed => 1,
            OrderState::Failed => 2,
        }
    }
}

impl ProblemWords {
    /// Title and advice for a code.
    pub(crate) fn of(&self, code: Code) -> (&'static str, &'static str) {
        match code {
            Code::Invalid => self.invalid,
            Code::Unauthenticated => self.unauthenticated,
            Code::Forbidden => self.forbidden,
            Code::CrossSite => self.cross_site,
            Code::NotFound => self.not_found,
            Code::Conflict => self.conflict,
            Code::TooLarge => self.too_large,
            Code::TooMany => self.too_many,
            Code::Unavailable => self.unavailable,
            Code::Internal => self.internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_persons_choice_comes_before_the_browsers() {
        assert_eq!(Lang::choose(Some("zh"), Some("en")), Lang::Zh);
        assert_eq!(
            Lang::choose(Some("klingon"), Some("zh-CN,zh;q=0.9,en;q=0.8")),
            Lang::Zh
        );
    }

    #[test]
    fn the_heaviest_known_language_of_the_browser_is_taken() {
        assert_eq!(
            Lang::choose(None, Some("fr, zh-TW;q=0.3, en;q=0.7")),
            Lang::En
        );
        assert_eq!(Lang::choose(None, Some("en;q=0.2,zh-Hans-CN")), Lang::Zh);
        assert_eq!(Lang::choose(None, Some("en;q=0,zh;q=0.1")), Lang::Zh);
        assert_eq!(Lang::choose(None, Some("de;;q=,,")), Lang::En);
        assert_eq!(Lang::choose(None, None), Lang::En);
    }

    #[test]
    fn templates_keep_their_places_in_every_language() {
        for (lang, _) in Lang::ALL {
            let words = lang.words();
            assert!(words.sale.left.contains("{left}") && words.sale.left.contains("{total}"));
            assert!(
                words.sale.your_time.contains("{time}") && words.sale.your_time.contains("{zone}")
            );
            assert!(words.sale.clock.contains("{time}"));
            assert!(words.live.offline.contains("{time}"));
            for wait in [words.live.away, words.live.too_many, words.answers.wait] {
                assert!(wait.contains("{seconds}"));
            }
        }
    }

    #[test]
    fn the_languages_do_not_share_a_sentence() {
        let (en, zh) = (Lang::En.words(), Lang::Zh.words());
        for outcome in Outcome::ALL {
            assert_ne!(en.answers.outcome(outcome), zh.answers.outcome(outcome));
        }
        for code in Code::ALL {
            assert_ne!(en.problem.of(code), zh.problem.of(code));
        }
    }
}
