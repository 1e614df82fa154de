//! Numbers and times as both sides write them, without any library.

/// `1234567` as `1,234,567`.
pub fn digits(number: i64) -> String {
    let plain = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1234567` as `1,234,567`, for counts that are never negative.
pub fn count(number: u64) -> String {
    digits(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The time of day in Beijing: `20:00:00`. China has one zone and no summer time.
pub fn clock_time(ms: i64) -> String {
    const EIGHT_HOURS: i64 = 8 * 3_600_000;
    let seconds = ms
        .saturating_add(EIGHT_HOURS)
        .div_euclid(1_000)
        .rem_euclid(86_400);
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// An age in one unit, as a table wants it: `340 ms`, `12 s`, `3 min`, `5 h`, `2 d`.
pub fn age(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..86_400_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// What is left, with a `+` where the figure was rounded down for the public.
pub fn left(stock: i64, total: i64, exact: bool) -> String {
    let rounded = !exact && stock >= 100 && stock < total;
    let plus = if rounded { "+" } else { "" };
    format!("{}{plus}", digits(stock.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(digits(0), "0");
        assert_eq!(digits(999), "999");
        assert_eq!(digits(1_000), "1,000");
        assert_eq!(digits(-1_234_567), "-1,234,567");
        assert_eq!(count(u64::MAX), digits(i64::MAX));
    }

    #[test]
    fn the_time_of_day_is_beijings() {
        assert_eq!(clock_time(1_796_040_000_000), "20:00:00");
        assert_eq!(clock_time(1_796_040_000_999), "20:00:00");
        assert_eq!(clock_time(-1), "07:59:59");
    }

    #[test]
    fn an_age_has_one_unit() {
        assert_eq!(age(0), "0 ms");
        assert_eq!(age(59_999), "59 s");
        assert_eq!(age(60_000), "1 min");
        assert_eq!(age(7_200_000), "2 h");
        assert_eq!(age(172_800_000), "2 d");
    }

    #[test]
    fn a_rounded_figure_says_that_there_may_be_more() {
        assert_eq!(left(1_200, 10_000, false), "1,200+");
        assert_eq!(left(1_234, 10_000, true), "1,234");
        assert_eq!(left(99, 10_000, false), "99");
        assert_eq!(left(100, 100, false), "100");
        assert_eq!(left(-3, 100, false), "0");
    }
}
