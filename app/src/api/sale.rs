//! Sales as everybody may see them.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json},
};
use serde::{Deserialize, Serialize};

use super::{ApiError, Listed};

/// What a sale is right now; the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleState {
    /// Redis does not hold it (yet).
    NotLoaded,
    /// Its end has passed.
    Ended,
    /// An operator stopped it for now.
    Paused,
    /// Its begin lies ahead.
    Scheduled,
    /// Nothing is left, for now.
    SoldOut,
    /// It sells.
    Open,
}

impl SaleState {
    /// The state as the contract spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotLoaded => "not_loaded",
            Self::Ended => "ended",
            Self::Paused => "paused",
            Self::Scheduled => "scheduled",
            Self::SoldOut => "sold_out",
            Self::Open => "open",
        }
    }

    /// The state that is spelled `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::NotLoaded,
            Self::Ended,
            Self::Paused,
            Self::Scheduled,
            Self::SoldOut,
            Self::Open,
        ];
        all.into_iter().find(|state| state.as_str() == text)
    }

    /// What the state has become by `now_ms`, as far as the clock alone can tell: a
    /// scheduled sale opens and an open one ends without anybody saying so.
    pub const fn at(self, now_ms: i64, begin_ms: i64, end_ms: i64) -> Self {
        match self {
            Self::NotLoaded | Self::Ended => self,
            _ if now_ms >= end_ms => Self::Ended,
            Self::Scheduled if now_ms >= begin_ms => Self::Open,
            other => other,
        }
    }
}

/// One sale. Money is integer cents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// The voucher's id.
    pub voucher_id: String,
    /// Its name.
    pub title: String,
    /// One line about it.
    pub subtitle: String,
    /// The rules, plain text.
    pub rules: String,
    /// What is paid.
    pub pay_cents: i64,
    /// What it is worth.
    pub value_cents: i64,
    /// How many there are in all.
    pub total: i64,
    /// How many are left: exact for admins, else coarse above 20.
    pub stock: i64,
    /// When it opens.
    pub begin_ms: i64,
    /// When it closes.
    pub end_ms: i64,
    /// What it is right now.
    pub state: SaleState,
}

#[cfg(feature = "ssr")]
impl From<seckill::SaleState> for SaleState {
    fn from(state: seckill::SaleState) -> Self {
        match state {
            seckill::SaleState::NotLoaded => Self::NotLoaded,
            seckill::SaleState::Ended => Self::Ended,
            seckill::SaleState::Paused => Self::Paused,
            seckill::SaleState::Scheduled => Self::Scheduled,
            seckill::SaleState::SoldOut => Self::SoldOut,
            seckill::SaleState::Open => Self::Open,
        }
    }
}

#[cfg(feature = "ssr")]
impl Sale {
    /// The sale as an admin sees it, or with a coarse stock as everybody does.
    pub(crate) fn shown(sale: seckill::Sale, exact: bool) -> Self {
        Self {
            voucher_id: sale.voucher_id.to_string(),
            title: sale.title,
            subtitle: sale.subtitle,
            rules: sale.rules,
            pay_cents: sale.pay_cents,
            value_cents: sale.value_cents,
            total: sale.total,
            stock: if exact {
                sale.stock
            } else {
                coarse(sale.stock)
            },
            begin_ms: sale.begin_ms,
            end_ms: sale.end_ms,
            state: sale.state.into(),
        }
    }
}

/// A stock figure for everybody: exact up to 20, above rounded down to two significant
/// digits. Never more than there is, and never 0 while there is something.
pub fn coarse(stock: i64) -> i64 {
    if stock <= 20 {
        return stock;
    }
    let mut unit = 1;
    while stock / unit >= 100 {
        unit *= 10;
    }
    stock / unit * unit
}

/// The sales, newest first.
#[server(name = GetSales, prefix = "/api", endpoint = "sales", input = GetUrl, output = Json)]
pub async fn sales(
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<Sale>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    let page = seckill::page::Page::parse(after.as_deref(), limit.as_deref())?;
    let exact = sees_exactly(&caller).await;
    let sales = if exact {
        caller.state.shop.sales(&page).await?
    } else {
        caller.state.shop.sales_shown(&page).await?
    };
    Ok(Listed::from_paged(sales, |sale| Sale::shown(sale, exact)))
}

/// One sale.
#[server(name = GetSale, prefix = "/api", endpoint = "sale", input = GetUrl, output = Json)]
pub async fn sale(#[server(default)] voucher_id: String) -> Result<Sale, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    let id = crate::caller::parse_id("voucher_id", &voucher_id)?;
    let exact = sees_exactly(&caller).await;
    let sale = if exact {
        caller.state.shop.sale(id).await?
    } else {
        caller.state.shop.sale_shown(id).await?
    };
    Ok(Sale::shown(sale, exact))
}

/// Whether the caller is an admin, who reads Redis itself. Pages ask without their session, so
/// that nobody is looked up for those who only watch; who can't be looked up sees what all see.
#[cfg(feature = "ssr")]
async fn sees_exactly(caller: &crate::caller::Caller) -> bool {
    match caller.user().await {
        Ok(Some(user)) => crate::caller::is_admin(&caller.state, Some(user.user_id)).await,
        Ok(None) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_exact_where_it_matters_and_coarse_above() {
        let cases = [
            (0, 0),
            (1, 1),
            (20, 20),
            (21, 21),
            (99, 99),
            (100, 100),
            (109, 100),
            (119, 110),
            (1_234, 1_200),
            (99_999, 99_000),
            (10_000_000, 10_000_000),
        ];
        for (stock, shown) in cases {
            assert_eq!(coarse(stock), shown, "{stock}");
        }
    }

    #[test]
    fn a_coarse_figure_never_promises_more_than_there_is() {
        for stock in (0..20_000).chain([9_999_999, i64::MAX]) {
            let shown = coarse(stock);
            assert!(
                shown <= stock && (shown > 0 || stock == 0),
                "{stock} was shown as {shown}"
            );
        }
    }

    #[test]
    fn the_clock_opens_and_ends_a_sale() {
        let at = |state: SaleState, now| state.at(now, 100, 200);
        assert_eq!(at(SaleState::Scheduled, 99), SaleState::Scheduled);
        assert_eq!(at(SaleState::Scheduled, 100), SaleState::Open);
        assert_eq!(at(SaleState::Open, 199), SaleState::Open);
        assert_eq!(at(SaleState::SoldOut, 200), SaleState::Ended);
        assert_eq!(at(SaleState::Paused, 150), SaleState::Paused);
        assert_eq!(at(SaleState::NotLoaded, 300), SaleState::NotLoaded);
    }
}
