//! The chart: answers and orders per second of each contender, on a logarithmic scale.

use std::fmt::Write;

use super::Outcome;

const LEFT: f64 = 330.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 34.0;
const TOP: f64 = 46.0;
/// Where the scale ends, as a power of ten; it begins at 10.
const DECADES: f64 = 4.0;

fn length(value: f64) -> f64 {
    let share = (value.max(10.0).log10() - 1.0) / DECADES;
    share.min(1.0) * (WIDTH - LEFT - 60.0)
}

/// An SVG that follows the reader's light or dark preference.
pub(super) fn chart(outcomes: &[Outcome]) -> String {
    let rows = f64::from(u32::try_from(outcomes.len()).unwrap_or(0));
    let height = TOP + rows * ROW + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <title>Answers and orders per second of each contender, logarithmic</title>\n\
         <style>text{{fill:#1f2328}}.a{{fill:#b93815}}.o{{fill:#6b7280}}.g{{stroke:#d0d7de}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.a{{fill:#f0743e}}.o{{fill:#8b949e}}.g{{stroke:#30363d}}}}</style>\n\
         <rect class=\"a\" x=\"{LEFT}\" y=\"8\" width=\"12\" height=\"12\"/><text x=\"348\" y=\"19\">answers/s</text>\n\
         <rect class=\"o\" x=\"440\" y=\"8\" width=\"12\" height=\"12\"/><text x=\"458\" y=\"19\">orders/s persisted</text>\n"
    );
    // Writing to a text does not fail.
    for (value, label) in [
        (10.0, "10"),
        (100.0, "100"),
        (1e3, "1 000"),
        (1e4, "10 000"),
        (1e5, "100 000"),
    ] {
        let x = LEFT + length(value);
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{x:.0}\" x2=\"{x:.0}\" y1=\"{TOP}\" y2=\"{height}\"/><text x=\"{x:.0}\" y=\"40\" text-anchor=\"middle\" font-size=\"11\">{label}</text>"
        );
    }
    for (outcome, n) in outcomes.iter().zip(0u32..) {
        let y = TOP + f64::from(n) * ROW + 6.0;
        let (answers, orders) = (
            length(outcome.answers_per_second),
            length(outcome.orders_per_second),
        );
        let mark = if outcome.audit_passed { "✓" } else { "✗" };
        let title = outcome
            .title
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" font-size=\"12\">{title} {mark}</text>\
             <rect class=\"a\" x=\"{LEFT}\" y=\"{y:.0}\" width=\"{answers:.1}\" height=\"11\"/>\
             <rect class=\"o\" x=\"{LEFT}\" y=\"{:.0}\" width=\"{orders:.1}\" height=\"11\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" font-size=\"10\">{:.0}</text><text x=\"{:.0}\" y=\"{:.0}\" font-size=\"10\">{:.0}</text>",
            LEFT - 8.0,
            y + 15.0,
            y + 12.0,
            LEFT + answers + 4.0,
            y + 9.0,
            outcome.answers_per_second,
            LEFT + orders + 4.0,
            y + 21.0,
            outcome.orders_per_second,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
