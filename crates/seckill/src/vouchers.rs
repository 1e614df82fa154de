//! Vouchers and their sales: what is sold, from when to when, and how it stands.

use std::sync::Arc;

use fred::types::Value;

use crate::ids::{UserId, VoucherId};
use crate::page::{Page, Paged};
use crate::redis::{list, number, text};
use crate::scripts::SALE;
use crate::store::voucher::{self, Voucher};
use crate::store::watch::audit_insert;
use crate::{Error, Shop, window};

/// The most units of one sale.
pub const MAX_STOCK: i64 = 10_000_000;
/// The highest price, in cents.
const MAX_CENTS: i64 = 10_000_000_000;
/// The longest title and subtitle, in characters; rules may be longer.
const MAX_TITLE: usize = 120;
const MAX_RULES: usize = 4_000;

/// A new voucher as an operator enters it: every field as text.
#[derive(Debug, Clone, Copy, Default)]
pub struct VoucherForm<'a> {
    /// What it is called, 1 to 120 characters.
    pub title: &'a str,
    /// One more line, at most 120 characters.
    pub subtitle: &'a str,
    /// The rules, at most 4,000 characters.
    pub rules: &'a str,
    /// The price in cents, 0 or more.
    pub pay_cents: &'a str,
    /// The face value in cents, 1 or more.
    pub value_cents: &'a str,
    /// Units, 1 to 10 million.
    pub stock: &'a str,
    /// When it opens: RFC 3339 with an offset, or a local time of `zone`.
    pub begin: &'a str,
    /// When it closes, in the same form.
    pub end: &'a str,
    /// An IANA zone name, or empty.
    pub zone: &'a str,
}

/// A new voucher whose every field was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVoucher {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) rules: String,
    pub(crate) pay_cents: i64,
    pub(crate) value_cents: i64,
    pub(crate) stock: i64,
    pub(crate) begin_ms: i64,
    pub(crate) end_ms: i64,
}

impl NewVoucher {
    /// Checks a form. `now_ms` is Redis' clock: the end has to lie after it; a begin in the past opens at once.
    ///
    /// # Errors
    /// `Invalid` with the first field that can't be taken and why.
    pub fn parse(form: &VoucherForm<'_>, now_ms: i64) -> Result<Self, Error> {
        let begin_ms = window::instant("begin", form.begin, form.zone)?;
        let end_ms = window::instant("end", form.end, form.zone)?;
        if end_ms <= begin_ms {
            return Err(Error::Invalid("end: has to lie after the begin".into()));
        }
        if end_ms <= now_ms {
            return Err(Error::Invalid("end: has to lie in the future".into()));
        }
        Ok(Self {
            title: line("title", form.title, 1, MAX_TITLE)?,
            subtitle: line("subtitle", form.subtitle, 0, MAX_TITLE)?,
            rules: prose("rules", form.rules, MAX_RULES)?,
            pay_cents: whole("pay_cents", form.pay_cents, 0, MAX_CENTS)?,
            value_cents: whole("value_cents", form.value_cents, 1, MAX_CENTS)?,
            stock: whole("stock", form.stock, 1, MAX_STOCK)?,
            begin_ms,
            end_ms,
        })
    }
}

fn prose(field: &str, text: &str, most: usize) -> Result<String, Error> {
    let text = text.trim();
    if text.chars().count() > most {
        return Err(Error::Invalid(format!(
            "{field}: at most {most} characters"
        )));
    }
    // PostgreSQL can't hold a NUL, and a page has no use for the other control characters.
    if text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\r' && c != '\t')
    {
        return Err(Error::Invalid(format!("{field}: no control characters")));
    }
    Ok(text.to_owned())
}

fn line(field: &str, text: &str, least: usize, most: usize) -> Result<String, Error> {
    let text = prose(field, text, most)?;
    // Spaces of no width are no title either.
    let visible = text.chars().filter(|c| {
        !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    });
    if visible.count() < least {
        return Err(Error::Invalid(format!("{field}: must not be empty")));
    }
    if text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!(
            "{field}: one line, no control characters"
        )));
    }
    Ok(text)
}

/// A whole number in decimal digits within these bounds.
pub(crate) fn whole(field: &str, text: &str, least: i64, most: i64) -> Result<i64, Error> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| Error::Invalid(format!("{field}: a whole number from {least} to {most}")))
}

/// How a sale stands; the first that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleState {
    /// Redis does not hold it, or not yet.
    NotLoaded,
    /// Its end has passed.
    Ended,
    /// An operator stopped it, or it came back after a loss.
    Paused,
    /// Its begin lies ahead.
    Scheduled,
    /// Nothing is left.
    SoldOut,
    /// It sells.
    Open,
}

impl SaleState {
    /// The state's word over HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotLoaded => "not_loaded",
            Self::Ended => "ended",
            Self::Paused => "paused",
            Self::Scheduled => "scheduled",
            Self::SoldOut => "sold_out",
            Self::Open => "open",
        }
    }
}

/// A voucher with its sale as it stands.
#[derive(Debug, Clone)]
pub struct Sale {
    /// Its id.
    pub voucher_id: VoucherId,
    /// What it is called.
    pub title: String,
    /// One more line.
    pub subtitle: String,
    /// The rules.
    pub rules: String,
    /// The price in cents.
    pub pay_cents: i64,
    /// The face value in cents.
    pub value_cents: i64,
    /// Units put on sale.
    pub total: i64,
    /// Units left, exact.
    pub stock: i64,
    /// When it opens, in milliseconds.
    pub begin_ms: i64,
    /// When it closes, in milliseconds.
    pub end_ms: i64,
    /// How it stands.
    pub state: SaleState,
    /// Whether Redis holds it, ready to decide.
    pub loaded: bool,
    /// Redis' clock when this was read; the process' when Redis could not be asked.
    pub now_ms: i64,
}

/// A sale's hash, as `sale.lua` reads it.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) now_ms: i64,
    /// None: the sale's hash is not there.
    pub(crate) sale: Option<LiveSale>,
}

/// The fields of a sale's hash.
#[derive(Debug, Clone)]
pub(crate) struct LiveSale {
    /// Both sentinels are there.
    pub(crate) whole: bool,
    pub(crate) stock: i64,
    pub(crate) total: i64,
    pub(crate) begin_ms: i64,
    pub(crate) end_ms: i64,
    pub(crate) open: bool,
    pub(crate) loading: bool,
    pub(crate) epoch: i64,
    pub(crate) rev: i64,
    pub(crate) acked: i64,
    pub(crate) in_flight: i64,
    pub(crate) dead: i64,
}

impl LiveSale {
    /// Whether admission would look at it at all.
    pub(crate) fn loaded(&self) -> bool {
        self.whole && !self.loading
    }

    /// How the sale stands at this time.
    pub(crate) fn state(&self, now_ms: i64) -> SaleState {
        if !self.loaded() {
            SaleState::NotLoaded
        } else if now_ms >= self.end_ms {
            SaleState::Ended
        } else if !self.open {
            SaleState::Paused
        } else if now_ms < self.begin_ms {
            SaleState::Scheduled
        } else if self.stock <= 0 {
            SaleState::SoldOut
        } else {
            SaleState::Open
        }
    }
}

impl Live {
    fn decode(reply: Value) -> Result<Self, Error> {
        let parts = list(reply)?;
        let part = |i: usize| number(parts.get(i).unwrap_or(&Value::Null));
        let sale = if parts.len() < 3 {
            None
        } else {
            Some(LiveSale {
                whole: part(1)? == 1,
                stock: part(2)?,
                total: part(3)?,
                begin_ms: part(4)?,
                end_ms: part(5)?,
                open: parts.get(6).map(text).as_deref() == Some("open"),
                loading: part(7)? != 0,
                epoch: part(8)?,
                rev: part(9)?,
                acked: part(11)?,
                in_flight: part(12)?,
                dead: part(13)?,
            })
        };
        Ok(Self {
            now_ms: part(0)?,
            sale,
        })
    }
}

impl Shop {
    /// Reads a sale's hash.
    pub(crate) async fn live(&self, voucher: &Voucher) -> Result<Live, Error> {
        let (names, lane, id) = (self.names(), voucher.lane, voucher.voucher_id);
        let keys = vec![
            names.sale(lane, id),
            names.buyers(lane, id),
            names.inflight(lane),
        ];
        Live::decode(
            self.redis()
                .eval(&SALE, keys, vec![id.to_string().into()])
                .await?,
        )
    }

    /// A sale as it stands: what never changes from the row, what moves from Redis.
    ///
    /// # Errors
    /// `NotFound` for an unknown voucher; `Unavailable` when a voucher that this process has
    /// not met before can't be looked up.
    pub async fn sale(&self, id: VoucherId) -> Result<Sale, Error> {
        let known = self.voucher(id).await?;
        let live = told_or_logged(&known, self.live(&known).await);
        let row = self.row_beside(known, live.as_ref()).await?;
        Ok(self.merged(&row, live))
    }

    /// The row that belongs beside what Redis said; none: it could not be asked.
    pub(crate) async fn row_beside(
        &self,
        known: Arc<Voucher>,
        live: Option<&Live>,
    ) -> Result<Arc<Voucher>, Error> {
        // Redis says what the row said when it was loaded, and what changed since.
        if live.is_some_and(|live| live.sale.as_ref().is_some_and(LiveSale::loaded)) {
            return Ok(known);
        }
        match voucher::voucher_by_id(self.pool(), known.voucher_id).await {
            Ok(Some(row)) => Ok(Arc::new(row)),
            Ok(None) => Err(Error::NotFound),
            Err(error) if live.is_none() => Err(error),
            // PostgreSQL is away: what this process remembers still names the sale.
            Err(_) => Ok(known),
        }
    }

    /// The same by the row, which knows of an end that was moved; by what this process remembers
    /// while PostgreSQL can't be asked.
    pub(crate) async fn is_released_by_row(&self, id: VoucherId) -> Result<bool, Error> {
        match voucher::voucher_by_id(self.pool(), id).await {
            Ok(Some(row)) => Ok(row.end_ms + self.hold_after_end_ms() <= self.now_ms()),
            Ok(None) => Ok(false),
            Err(Error::Unavailable(_)) => self.is_released(id).await,
            Err(error) => Err(error),
        }
    }

    /// Whether Redis need not hold this sale any more: it ended long ago.
    pub(crate) async fn is_released(&self, id: VoucherId) -> Result<bool, Error> {
        let known = self.voucher(id).await?;
        Ok(known.end_ms + self.hold_after_end_ms() <= self.now_ms())
    }

    pub(crate) fn merged(&self, row: &Voucher, live: Option<Live>) -> Sale {
        let Some(live) = live else {
            return merge(row, None, self.now_ms());
        };
        let mut sale = merge(row, live.sale.as_ref(), live.now_ms);
        if !sale.loaded && row.end_ms + self.hold_after_end_ms() <= live.now_ms {
            sale.state = SaleState::Ended;
        }
        sale
    }

    /// The sales, newest first.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none; `Unavailable` when PostgreSQL can't be asked.
    pub async fn sales(&self, page: &Page) -> Result<Paged<Sale>, Error> {
        let below = page.cursor()?;
        let rows = voucher::voucher_page(self.pool(), below, i64::from(page.limit) + 1).await?;
        let rows = Paged::cut(rows, page, |row| row.voucher_id.to_string());
        let live = futures::future::join_all(rows.items.iter().map(|row| self.live(row))).await;
        let items = rows
            .items
            .iter()
            .zip(live)
            .map(|(row, live)| self.merged(row, told_or_logged(row, live)))
            .collect();
        Ok(Paged {
            items,
            next: rows.next,
        })
    }

    /// Creates a voucher and preloads its sale. A crash, or Redis away, between the two is repaired by the reconciler.
    ///
    /// # Errors
    /// `Unavailable` when PostgreSQL can't be asked: nothing was created, unless its reply was lost.
    pub async fn create_voucher(&self, by: UserId, new: NewVoucher) -> Result<Sale, Error> {
        let shop = self.clone();
        self.detached(async move {
            let mut tx = shop.pool().begin().await?;
            let id = voucher::voucher_insert(&mut *tx, shop.lane_count(), by, &new).await?;
            let subject = format!("voucher {id}");
            audit_insert(&mut *tx, shop.now_ms(), by, "create", &subject, &new.stock.to_string()).await?;
            tx.commit().await?;
            crate::fail_point("create-after-row");
            tracing::info!(voucher_id = %id, user_id = %by, stock = new.stock, "voucher created");
            if let Err(error) = shop.load(id).await {
                tracing::warn!(%error, voucher_id = %id, "preload failed; the reconciler will repeat it");
            }
            shop.showcase().created();
            shop.sale(id).await
        })
        .await
    }
}

/// A sale is shown without Redis where that can't be asked; why, the log knows.
pub(crate) fn told_or_logged(row: &Voucher, live: Result<Live, Error>) -> Option<Live> {
    let log = |error: &Error| tracing::debug!(%error, voucher_id = %row.voucher_id, "a sale is shown without Redis");
    live.inspect_err(log).ok()
}

fn merge(row: &Voucher, live: Option<&LiveSale>, now_ms: i64) -> Sale {
    let loaded = live.filter(|live| live.loaded());
    Sale {
        voucher_id: row.voucher_id,
        title: row.title.clone(),
        subtitle: row.subtitle.clone(),
        rules: row.rules.clone(),
        pay_cents: row.pay_cents,
        value_cents: row.value_cents,
        total: loaded.map_or(row.total, |l| l.total),
        stock: loaded.map_or(row.stock, |l| l.stock).max(0),
        begin_ms: loaded.map_or(row.begin_ms, |l| l.begin_ms),
        end_ms: loaded.map_or(row.end_ms, |l| l.end_ms),
        state: loaded.map_or(SaleState::NotLoaded, |l| l.state(now_ms)),
        loaded: loaded.is_some(),
        now_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> VoucherForm<'static> {
        VoucherForm {
            title: "Lunch for two",
            pay_cents: "4900",
            value_cents: "9900",
            stock: "100",
            begin: "2026-11-11T20:00:00+08:00",
            end: "2026-11-11T21:00:00+08:00",
            ..VoucherForm::default()
        }
    }

    #[test]
    fn a_form_that_is_right_is_taken() {
        let new = NewVoucher::parse(&form(), 0).expect("a valid form");
        assert_eq!((new.stock, new.end_ms - new.begin_ms), (100, 3_600_000));
    }

    #[test]
    fn each_wrong_field_is_named() {
        let long = "x".repeat(10_000);
        let wrong = [
            (
                "title",
                VoucherForm {
                    title: "  ",
                    ..form()
                },
            ),
            (
                "title",
                VoucherForm {
                    title: &long,
                    ..form()
                },
            ),
            (
                "title",
                VoucherForm {
                    title: "a\nb",
                    ..form()
                },
            ),
            (
                "rules",
                VoucherForm {
                    rules: "a\0b",
                    ..form()
                },
            ),
            (
                "pay_cents",
                VoucherForm {
                    pay_cents: "-1",
                    ..form()
                },
            ),
            (
                "value_cents",
                VoucherForm {
                    value_cents: "0",
                    ..form()
                },
            ),
            (
                "stock",
                VoucherForm {
                    stock: "0",
                    ..form()
                },
            ),
            (
                "stock",
                VoucherForm {
                    stock: "10000001",
                    ..form()
                },
            ),
            (
                "end",
                VoucherForm {
                    end: "2026-11-11T19:00:00+08:00",
                    ..form()
                },
            ),
            (
                "begin",
                VoucherForm {
                    begin: "soon",
                    ..form()
                },
            ),
        ];
        for (field, form) in wrong {
            match NewVoucher::parse(&form, 0) {
                Err(Error::Invalid(why)) => assert!(why.starts_with(field), "{field}: {why}"),
                other => panic!("{field}: {other:?}"),
            }
        }
    }

    #[test]
    fn an_end_in_the_past_is_refused() {
        let now = form().end;
        let late = window::instant("end", now, "").expect("a time");
        assert!(matches!(
            NewVoucher::parse(&form(), late),
            Err(Error::Invalid(_))
        ));
    }

    #[test]
    fn the_first_state_that_holds_is_told() {
        let live = LiveSale {
            whole: true,
            stock: 1,
            total: 1,
            begin_ms: 10,
            end_ms: 20,
            open: true,
            loading: false,
            epoch: 1,
            rev: 0,
            acked: 0,
            in_flight: 0,
            dead: 0,
        };
        assert_eq!(live.state(9), SaleState::Scheduled);
        assert_eq!(live.state(10), SaleState::Open);
        assert_eq!(live.state(20), SaleState::Ended);
        assert_eq!(
            LiveSale {
                open: false,
                ..live.clone()
            }
            .state(9),
            SaleState::Paused
        );
        assert_eq!(
            LiveSale {
                stock: 0,
                ..live.clone()
            }
            .state(10),
            SaleState::SoldOut
        );
        assert_eq!(
            LiveSale {
                loading: true,
                ..live
            }
            .state(20),
            SaleState::NotLoaded
        );
    }
}
