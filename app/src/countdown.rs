//! The mathematics of the countdown, the same on both sides: the server renders the
//! first face, the island every later one.

/// The face of a countdown: `09:59` under an hour, `1:02:03` under a day, and with the
/// days in front above that (`2 d 03:04:05`, `day` being the word for them).
///
/// Seconds are rounded up: the face turns to 00:00 at the very moment of the opening,
/// not a second early.
pub fn face(remaining_ms: i64, day: &str) -> String {
    let seconds = whole_seconds(remaining_ms);
    let (days, hours, minutes, seconds) = (
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    );
    match (days, hours) {
        (0, 0) => format!("{minutes:02}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} {day} {hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Seconds left, rounded up, never negative.
pub fn whole_seconds(remaining_ms: i64) -> i64 {
    let ms = remaining_ms.max(0);
    ms / 1000 + i64::from(ms % 1000 != 0)
}

/// How long the present face stays right, in milliseconds.
pub fn until_next_face(remaining_ms: i64) -> i64 {
    if remaining_ms <= 0 {
        1000
    } else {
        (remaining_ms - 1) % 1000 + 1
    }
}

/// When a listener is told how long it still takes, in seconds before the opening.
pub const ANNOUNCED: [i64; 5] = [600, 300, 60, 30, 10];

/// Which of [`ANNOUNCED`] was passed between two looks at the clock, as an index; the
/// latest one if several were (a tab that slept).
pub fn announcement(before_ms: i64, now_ms: i64) -> Option<usize> {
    ANNOUNCED
        .iter()
        .rposition(|seconds| {
            whole_seconds(before_ms) > *seconds && whole_seconds(now_ms) <= *seconds
        })
        .filter(|_| now_ms > 0)
}

/// What is known of the difference between the server's clock and the browser's
/// monotonic one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Server's milliseconds minus monotonic milliseconds.
    pub offset: f64,
    /// How far off `offset` may have been when it was measured: half the round trip.
    pub uncertainty: f64,
    /// When it was measured, monotonic milliseconds.
    pub at: f64,
}

/// How far two quartz clocks drift apart at worst, per millisecond (100 ppm).
const DRIFT: f64 = 0.000_1;

impl Estimate {
    /// From one round trip: asked at `sent`, answered at `received` (monotonic), the
    /// server's clock having been `server_ms` somewhere between. The middle is the best
    /// guess, half the trip the largest error.
    pub fn from_trip(sent: f64, received: f64, server_ms: f64) -> Self {
        let half = (received - sent).max(0.0) / 2.0;
        Self {
            offset: server_ms - (sent + half),
            uncertainty: half,
            at: received,
        }
    }

    /// How far off the estimate may be at `now`.
    pub fn error_at(&self, now: f64) -> f64 {
        self.uncertainty + (now - self.at).max(0.0) * DRIFT
    }

    /// The better of two estimates at `now`: the quicker trip, unless it is so old that
    /// the clocks may have drifted further than the slower one can be wrong.
    pub fn better(self, other: Self, now: f64) -> Self {
        if other.error_at(now) <= self.error_at(now) {
            other
        } else {
            self
        }
    }

    /// Whether the two can't both be right at `now`: one of the clocks has jumped between them.
    pub fn excludes(&self, other: &Self, now: f64) -> bool {
        (other.offset - self.offset).abs() > self.error_at(now) + other.error_at(now)
    }

    /// The server's clock at monotonic time `now`.
    pub fn server_ms(&self, now: f64) -> f64 {
        now + self.offset
    }
}

/// How long to wait before asking for an order's state again: quick at first, then less
/// and less often. `None` when it has taken so long that the page should say so.
pub fn poll_delay_ms(attempt: u32, waited_ms: f64) -> Option<u32> {
    const FIRST: u32 = 150;
    const LONGEST: u32 = 5_000;
    const END_MS: f64 = 120_000.0;
    if waited_ms >= END_MS {
        return None;
    }
    // 150 ms x 1.5^n passes 5 s at n = 9.
    let mut delay = FIRST;
    for _ in 0..attempt.min(9) {
        delay = delay * 3 / 2;
    }
    Some(delay.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_face_shows_what_is_left() {
        assert_eq!(face(29_001, "d"), "00:30");
        assert_eq!(face(29_000, "d"), "00:29");
        assert_eq!(face(1, "d"), "00:01");
        assert_eq!(face(0, "d"), "00:00");
        assert_eq!(face(-5_000, "d"), "00:00");
        assert_eq!(face(3_600_000, "d"), "1:00:00");
        assert_eq!(
            face(2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_000, "天"),
            "2 天 03:04:05"
        );
        assert_eq!(face(86_400_000, "d"), "1 d 00:00:00");
    }

    #[test]
    fn a_face_stays_right_until_the_next_one_is_due() {
        for remaining in [1, 999, 1_000, 1_001, 29_500, 60_000] {
            let wait = until_next_face(remaining);
            assert!((1..=1000).contains(&wait));
            assert_eq!(
                face(remaining, "d"),
                face(remaining - wait + 1, "d"),
                "{remaining}"
            );
            assert_ne!(
                face(remaining, "d"),
                face(remaining - wait, "d"),
                "{remaining}"
            );
        }
    }

    #[test]
    fn listeners_hear_five_marks_and_not_every_second() {
        let mut heard = Vec::new();
        let mut before = 700_000;
        while before > -2_000 {
            let now = before - 1_000;
            heard.extend(announcement(before, now));
            before = now;
        }
        assert_eq!(heard, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_tab_that_slept_hears_the_latest_mark_only() {
        assert_eq!(announcement(400_000, 25_000), Some(3));
        assert_eq!(announcement(400_000, -1), None);
        assert_eq!(announcement(9_000, 8_000), None);
    }

    #[test]
    fn the_middle_of_a_round_trip_is_the_servers_time() {
        let estimate = Estimate::from_trip(1_000.0, 1_100.0, 500_000.0);
        assert_eq!(estimate.offset, 498_950.0);
        assert_eq!(estimate.uncertainty, 50.0);
        assert_eq!(estimate.server_ms(1_050.0), 500_000.0);
    }

    #[test]
    fn the_quickest_trip_counts_until_it_is_old() {
        let quick = Estimate::from_trip(0.0, 20.0, 0.0);
        let slow = Estimate::from_trip(1_000.0, 1_200.0, 0.0);
        assert_eq!(quick.better(slow, 1_200.0), quick);
        assert_eq!(slow.better(quick, 1_200.0), quick);
        let hours_later = Estimate::from_trip(7_200_000.0, 7_200_200.0, 0.0);
        assert_eq!(quick.better(hours_later, 7_200_200.0), hours_later);
    }

    #[test]
    fn estimates_that_a_sleep_lies_between_exclude_each_other() {
        let before = Estimate::from_trip(0.0, 20.0, 500_010.0);
        let awake = Estimate::from_trip(1_000.0, 1_200.0, 501_100.0);
        let asleep = Estimate::from_trip(1_000.0, 1_200.0, 1_101_100.0);
        assert!(!before.excludes(&awake, 1_200.0));
        assert!(before.excludes(&asleep, 1_200.0));
    }

    #[test]
    fn the_poll_slows_down_and_ends() {
        assert_eq!(poll_delay_ms(0, 0.0), Some(150));
        assert_eq!(poll_delay_ms(1, 200.0), Some(225));
        assert_eq!(poll_delay_ms(50, 60_000.0), Some(5_000));
        assert_eq!(poll_delay_ms(50, 120_000.0), None);
        let delays: Vec<_> = (0..12).filter_map(|n| poll_delay_ms(n, 0.0)).collect();
        assert!(delays.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
