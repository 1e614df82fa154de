//! When a sale opens and closes, as an operator enters it.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::Error;

/// The latest time that can be entered, 9999-01-01T00:00:00Z.
const LATEST_MS: i64 = 253_370_764_800_000;

/// Reads a time: RFC 3339 with an offset, or a local time in the named zone.
///
/// # Errors
/// `Invalid`, naming the field, for what is no time, an unknown zone, or a local time that does
/// not exist or exists twice there (the clock is set forward or back).
pub(crate) fn instant(field: &str, text: &str, zone: &str) -> Result<i64, Error> {
    let text = text.trim();
    let invalid = |why: &str| Error::Invalid(format!("{field}: {why}"));
    let written = form(text);
    if written.is_none() {
        return Err(invalid(
            "a time such as 2026-11-11T20:00:00+08:00, or a local time with its zone",
        ));
    }
    let at = if zone.is_empty() {
        text.parse::<Timestamp>().map_err(|_| {
            invalid("a time such as 2026-11-11T20:00:00+08:00, or a local time with its zone")
        })?
    } else {
        local(text, zone, written == Some(true)).map_err(|why| invalid(&why))?
    };
    let ms = at.as_millisecond();
    if (0..=LATEST_MS).contains(&ms) {
        Ok(ms)
    } else {
        Err(invalid("a time from 1970 to 9998"))
    }
}

/// Whether a text is a date and a time to the minute or finer, joined by a T; and whether an offset ends it.
fn form(text: &str) -> Option<bool> {
    let (date, time) = text.split_once(['T', 't'])?;
    let like = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(b, f)| {
                if f == b'0' {
                    b.is_ascii_digit()
                } else {
                    b == f
                }
            })
    };
    if !like(date, "0000-00-00") {
        return None;
    }
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], Some(&time[at..])),
        None => (time, None),
    };
    let offset_fits =
        offset.is_none_or(|o| matches!(o, "Z" | "z") || like(o, "+00:00") || like(o, "-00:00"));
    let (clock, fraction) = time
        .split_once('.')
        .map_or((time, None), |(c, f)| (c, Some(f)));
    let digits = |f: &str| (1..=9).contains(&f.len()) && f.bytes().all(|b| b.is_ascii_digit());
    let clock_fits = match fraction {
        Some(fraction) => like(clock, "00:00:00") && digits(fraction),
        None => like(clock, "00:00:00") || like(clock, "00:00"),
    };
    (offset_fits && clock_fits).then_some(offset.is_some())
}

fn local(text: &str, zone: &str, offset: bool) -> Result<Timestamp, String> {
    let zone = TimeZone::get(zone)
        .map_err(|_| "the zone is not one of the IANA names, such as Asia/Shanghai".to_owned())?;
    if offset {
        return text
            .parse()
            .map_err(|_| "a time such as 2026-11-11T20:00:00+08:00".to_owned());
    }
    let civil: DateTime = text
        .parse()
        .map_err(|_| "a local time such as 2026-11-11T20:00".to_owned())?;
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset
            .to_timestamp(civil)
            .map_err(|_| "out of range".to_owned()),
        AmbiguousOffset::Gap { .. } => Err(
            "this local time does not exist: the clock is set forward there; give an offset".into(),
        ),
        AmbiguousOffset::Fold { .. } => {
            Err("this local time exists twice: the clock is set back there; give an offset".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_or_a_zone_gives_the_same_instant_to_the_millisecond() {
        let offset = instant("begin", "2026-11-11T20:00:00.123+08:00", "").expect("an offset");
        let zoned = instant("begin", "2026-11-11T20:00:00.123", "Asia/Shanghai").expect("a zone");
        assert_eq!((offset, zoned), (1_794_398_400_123, 1_794_398_400_123));
        assert!(
            instant("begin", "2026-11-11T20:00", "Asia/Shanghai").is_ok(),
            "as a browser's input gives it"
        );
    }

    #[test]
    fn a_local_time_in_a_gap_or_a_fold_is_refused() {
        for (text, zone) in [
            ("2026-03-29T02:30", "Europe/Berlin"),
            ("2026-10-25T02:30", "Europe/Berlin"),
            ("2026-11-11T20:00", "Mars/Olympus"),
            ("2026-13-11T20:00", "Asia/Shanghai"),
            ("", "Asia/Shanghai"),
            ("2026-11-11T20:00", ""),
            ("0001-01-01T00:00:00Z", ""),
            ("2026-11-11", "Asia/Shanghai"),
            ("20261111T20", "Asia/Shanghai"),
            ("2026-11-11T20:00[America/New_York]", "Asia/Shanghai"),
            ("2026-11-11T20:00:00+08:00", "Mars/Olympus"),
            ("2026-11-11T20:00:00.Z", ""),
        ] {
            assert!(
                matches!(instant("begin", text, zone), Err(Error::Invalid(_))),
                "{text} {zone}"
            );
        }
    }
}
