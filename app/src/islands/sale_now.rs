//! The sale as the islands of its page share it.

use leptos::prelude::*;

use super::packed::FIELD;
use crate::api::sale::SaleState;

/// What moves of a sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaleNow {
    /// The voucher's id.
    pub voucher_id: String,
    /// What the sale is.
    pub state: SaleState,
    /// What is left, as far as this person may know.
    pub stock: i64,
    /// How many there are in all.
    pub total: i64,
    /// When it opens.
    pub begin_ms: i64,
    /// When it closes.
    pub end_ms: i64,
    /// The server's clock when the page was rendered.
    pub now_ms: i64,
}

impl SaleNow {
    /// As one text.
    #[cfg(feature = "ssr")]
    pub fn packed(&self) -> String {
        let numbers = [
            self.stock,
            self.total,
            self.begin_ms,
            self.end_ms,
            self.now_ms,
        ];
        let mut text = format!("{}{FIELD}{}", self.voucher_id, self.state.as_str());
        for number in numbers {
            text.push(FIELD);
            text.push_str(&number.to_string());
        }
        text
    }

    /// From that text.
    pub fn unpacked(text: &str) -> Self {
        let mut fields = text.split(FIELD);
        let mut next = || fields.next().unwrap_or_default();
        let (voucher_id, state) = (next().to_owned(), next());
        let mut number = || next().parse().unwrap_or(0);
        Self {
            voucher_id,
            state: SaleState::parse(state).unwrap_or(SaleState::NotLoaded),
            stock: number(),
            total: number(),
            begin_ms: number(),
            end_ms: number(),
            now_ms: number(),
        }
    }

    /// All were taken and it is over: nothing comes back.
    pub fn is_gone_for_good(&self) -> bool {
        self.state == SaleState::Ended && self.stock <= 0
    }
}

/// A signal of the sale: moving in the browser, as rendered on the server.
#[cfg(feature = "hydrate")]
pub(super) fn moving(rendered: &SaleNow) -> RwSignal<SaleNow> {
    let now = RwSignal::new(rendered.clone());
    let rendered = rendered.clone();
    Effect::new(move |_| {
        now.set(crate::browser::sale::follow(&rendered).get());
    });
    now
}

#[cfg(not(feature = "hydrate"))]
pub(super) fn moving(rendered: &SaleNow) -> RwSignal<SaleNow> {
    RwSignal::new(rendered.clone())
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_sale_comes_out_as_it_went_in() {
        let sale = SaleNow {
            voucher_id: "9223372036854775807".to_owned(),
            state: SaleState::SoldOut,
            stock: 0,
            total: 10_000_000,
            begin_ms: 1_796_040_000_000,
            end_ms: 1_796_043_600_001,
            now_ms: -1,
        };
        assert_eq!(SaleNow::unpacked(&sale.packed()), sale);
        assert_eq!(SaleNow::unpacked("").state, SaleState::NotLoaded);
    }
}
