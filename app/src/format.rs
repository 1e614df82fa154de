//! Prices, numbers and times as people read them.

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};

use crate::words::Lang;

/// Cents as yuan: `¥80` or `¥79.90`.
pub(crate) fn money(cents: i64) -> String {
    let (sign, cents) = if cents < 0 {
        ("-", cents.unsigned_abs())
    } else {
        ("", cents.unsigned_abs())
    };
    let whole = crate::figures::digits(i64::try_from(cents / 100).unwrap_or(i64::MAX));
    match cents % 100 {
        0 => format!("{sign}¥{whole}"),
        rest => format!("{sign}¥{whole}.{rest:02}"),
    }
}

/// Date and time in Beijing, the zone that the page names beside it.
pub(crate) fn date_time(ms: i64, lang: Lang) -> String {
    let pattern = match lang {
        Lang::En => "%-d %b %Y, %H:%M:%S",
        Lang::Zh => "%Y年%-m月%-d日 %H:%M:%S",
    };
    strftime(ms, pattern)
}

/// Date and time to the minute in Beijing, for tables.
pub(crate) fn short_date_time(ms: i64) -> String {
    strftime(ms, "%Y-%m-%d %H:%M")
}

/// Date and time to the second in Beijing, for what is compared with a log.
pub(crate) fn table_time(ms: i64) -> String {
    strftime(ms, "%Y-%m-%d %H:%M:%S")
}

/// The machine's form for `<time datetime>`.
pub(crate) fn iso(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map(|at| at.to_string())
        .unwrap_or_default()
}

fn strftime(ms: i64, pattern: &str) -> String {
    // China has had one zone without summer time since 1991.
    let beijing = TimeZone::fixed(Offset::constant(8));
    Timestamp::from_millisecond(ms)
        .map(|at| at.to_zoned(beijing).strftime(pattern).to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_short_where_it_can_be() {
        assert_eq!(money(8_000), "¥80");
        assert_eq!(money(7_990), "¥79.90");
        assert_eq!(money(5), "¥0.05");
        assert_eq!(money(123_456_700), "¥1,234,567");
    }

    #[test]
    fn times_are_beijings_in_each_language() {
        let ms = 1_796_040_000_000;
        assert_eq!(date_time(ms, Lang::En), "30 Nov 2026, 20:00:00");
        assert_eq!(date_time(ms, Lang::Zh), "2026年11月30日 20:00:00");
        assert_eq!(short_date_time(ms), "2026-11-30 20:00");
        assert_eq!(table_time(ms), "2026-11-30 20:00:00");
        assert_eq!(iso(ms), "2026-11-30T12:00:00Z");
        assert_eq!(date_time(i64::MAX, Lang::En), "");
    }
}
