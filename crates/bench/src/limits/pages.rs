//! What is printed and written: a table with the ratios, the figures, and the curves as a chart.

use std::fmt::Write as _;
use std::path::Path;

use super::{Compared, Curve, Findings, LimitsError};

/// The lines that are printed.
pub(super) fn lines(found: &Findings) -> Vec<String> {
    let mut lines = vec![format!(
        "limits, {}, {} cores, medians of {}",
        found.date, found.cores, found.rounds
    )];
    lines.push(format!(
        "  {:<42}{:>12}{:>12}  {:<12}{:>6}  budget",
        "", "bare", "product", "", "ratio"
    ));
    for line in &found.compared {
        lines.push(format!(
            "  {:<42}{:>12.0}{:>12.0}  {:<12}{:>6.2}  {}",
            line.name,
            line.bare,
            line.product,
            line.unit,
            line.ratio,
            budget(line)
        ));
    }
    for figure in &found.figures {
        let sign = if figure.kept { '✓' } else { '✗' };
        lines.push(format!("  {sign} {}: {}", figure.name, figure.value));
    }
    for curve in &found.curves {
        lines.push(format!("  {}", curve.name));
        for point in &curve.points {
            let bytes = point
                .bytes
                .map_or(String::new(), |bytes| format!(", {bytes:.0} bytes each"));
            lines.push(format!(
                "    {:>10}  {:>8.0}/s{bytes}",
                point.size, point.per_second
            ));
        }
    }
    lines
}

fn budget(line: &Compared) -> String {
    match line.budget {
        Some(budget) if line.ratio >= budget => format!("{budget}, met"),
        Some(budget) => format!("{budget}, not met"),
        None => "–".into(),
    }
}

/// Writes the three documents.
pub(super) fn write(folder: &Path, found: &Findings) -> Result<(), LimitsError> {
    let json = serde_json::to_string_pretty(found)
        .map_err(|error| LimitsError::Broken(error.to_string()))?;
    std::fs::write(folder.join("limits.json"), json + "\n")?;
    std::fs::write(folder.join("limits.svg"), chart(&found.curves))?;
    std::fs::write(folder.join("limits.md"), markdown(found))?;
    Ok(())
}

fn markdown(found: &Findings) -> String {
    let mut text = format!(
        "# How near to the limit\n\n\
         Written by `script/bench limits` on {} on {} cores, medians of {} rounds.\n\n\
         Each line is the product beside a bare program that does the same and nothing else, in turn in one run, \
         with the same load generator, Redis and PostgreSQL on the same cores. \
         Only the ratio means something on another machine.\n\n\
         | | bare | product | in | ratio | budget |\n|---|---|---|---|---|---|\n",
        found.date, found.cores, found.rounds
    );
    // Writing to a text does not fail.
    for line in &found.compared {
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {} | {:.2} | {} |",
            line.name,
            line.bare,
            line.product,
            line.unit,
            line.ratio,
            budget(line)
        );
    }
    text.push_str("\n## The shop at its limits\n\n| | | kept |\n|---|---|---|\n");
    for figure in &found.figures {
        let kept = if figure.kept { "yes" } else { "no" };
        let _ = writeln!(text, "| {} | {} | {kept} |", figure.name, figure.value);
    }
    text.push_str("\n## Growth\n\n![Decisions per second by size](limits.svg)\n");
    for curve in &found.curves {
        let _ = write!(
            text,
            "\n{}\n\n| size | per second | bytes of Redis each |\n|---|---|---|\n",
            curve.name
        );
        for point in &curve.points {
            let bytes = point
                .bytes
                .map_or("–".into(), |bytes| format!("{bytes:.0}"));
            let _ = writeln!(
                text,
                "| {} | {:.0} | {bytes} |",
                point.size, point.per_second
            );
        }
    }
    text
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 40.0;
/// The scales' ends, as powers of ten.
const SIZES: f64 = 7.0;
const RATES: (f64, f64) = (2.0, 6.0);

fn x(size: f64) -> f64 {
    LEFT + size.max(1.0).log10() / SIZES * (WIDTH - LEFT - RIGHT)
}

fn y(rate: f64) -> f64 {
    let share = (rate.max(100.0).log10() - RATES.0) / (RATES.1 - RATES.0);
    HEIGHT - BOTTOM - share.min(1.0) * (HEIGHT - TOP - BOTTOM)
}

/// An SVG that follows the reader's light or dark preference; both scales are logarithmic.
#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
fn chart(curves: &[Curve]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>Per second by size, both logarithmic</title>\n\
         <style>text{{fill:#1f2328}}.g{{stroke:#d0d7de}}.c0{{stroke:#b93815}}.c1{{stroke:#3b6fb5}}.c2{{stroke:#4d7c3a}}\
         path{{fill:none;stroke-width:2}}circle{{fill:none;stroke-width:2}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.g{{stroke:#30363d}}.c0{{stroke:#f0743e}}.c1{{stroke:#6ea8fe}}.c2{{stroke:#7ee787}}}}</style>\n"
    );
    for power in 0..=7i32 {
        let at = x(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{at:.0}\" x2=\"{at:.0}\" y1=\"{TOP}\" y2=\"{:.0}\"/>\
             <text x=\"{at:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0,
            grouped(10u64.pow(power.unsigned_abs()))
        );
    }
    for power in 2..=6i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.0}\" y2=\"{at:.0}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}/s</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            grouped(10u64.pow(power.unsigned_abs()))
        );
    }
    for (curve, n) in curves.iter().zip(0u32..) {
        let at = |point: &super::Point| (x(point.size as f64), y(point.per_second));
        let path: Vec<String> = curve
            .points
            .iter()
            .map(|point| {
                let (x, y) = at(point);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let top = 18.0 + 20.0 * f64::from(n);
        let _ = writeln!(
            svg,
            "<path class=\"c{n}\" d=\"M{LEFT} {:.0}h24\"/><text x=\"{:.0}\" y=\"{top:.0}\">{}</text>\
             <path class=\"c{n}\" d=\"M{}\"/>",
            top - 4.0,
            LEFT + 32.0,
            curve.name,
            path.join("L")
        );
        for point in &curve.points {
            let (x, y) = at(point);
            let _ = writeln!(
                svg,
                "<circle class=\"c{n}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A number with a thin gap before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (digit, left) in digits.chars().zip((0..digits.len()).rev()) {
        text.push(digit);
        if left > 0 && left % 3 == 0 {
            text.push('\u{2009}');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Point;
    use super::*;

    fn found(ratio: f64) -> Findings {
        Findings {
            compared: vec![Compared {
                name: "sold out".into(),
                unit: "answers/s".into(),
                bare: 100.0,
                product: 100.0 * ratio,
                ratio,
                budget: Some(0.9),
            }],
            curves: vec![Curve {
                name: "buyers".into(),
                points: vec![Point {
                    size: 1_000_000,
                    per_second: 12_345.0,
                    bytes: Some(73.4),
                }],
            }],
            ..Findings::default()
        }
    }

    #[test]
    fn a_budget_is_told_as_it_came_out() {
        assert!(markdown(&found(0.91)).contains("| 0.91 | 0.9, met |"));
        assert!(markdown(&found(0.5)).contains("| 0.50 | 0.9, not met |"));
        assert!(markdown(&found(0.5)).contains("| 1000000 | 12345 | 73 |"));
    }

    #[test]
    fn a_point_lies_inside_of_the_chart() {
        assert!(x(1e7) <= WIDTH - RIGHT + 0.1 && x(0.0) >= LEFT);
        assert!(y(1e9) >= TOP - 0.1 && y(0.0) <= HEIGHT - BOTTOM);
        assert_eq!(grouped(10_000_000), "10\u{2009}000\u{2009}000");
        assert!(chart(&found(1.0).curves).ends_with("</svg>\n"));
    }
}
