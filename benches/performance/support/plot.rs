//! How cost grows, as a picture: lines over two logarithmic axes, in SVG.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The picture and the part of it inside the axes, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
const COLOURS: [&str; 3] = ["#0969da", "#cf222e", "#57606a"];

/// A name, and points from left to right, all above zero.
pub(crate) type Line = (&'static str, Vec<(f64, f64)>);

/// Where plots and profiles go: `target/performance`.
///
/// # Errors
/// What the kernel said.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?;
    let folder = target.join("performance");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes `target/performance/NAME.svg`.
///
/// # Errors
/// What the kernel said.
pub(crate) fn plot(name: &str, [across, up]: [&str; 2], lines: &[Line]) -> anyhow::Result<()> {
    let path = folder()?.join(name).with_extension("svg");
    std::fs::write(&path, picture([across, up], lines)?)?;
    println!("\nplot: {}", path.display());
    Ok(())
}

fn picture([across, up]: [&str; 2], lines: &[Line]) -> anyhow::Result<String> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (left, right) = powers(points().map(|point| point.0));
    let (low, high) = powers(points().map(|point| point.1));
    let x = |value: f64| MARGIN + (value.log10() - left) / (right - left) * (WIDTH - 2.0 * MARGIN);
    let y = |value: f64| {
        HEIGHT - MARGIN - (value.log10() - low) / (high - low) * (HEIGHT - 2.0 * MARGIN)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    let (top, bottom) = (MARGIN, HEIGHT - MARGIN);
    for power in left as i32..=right as i32 {
        let (at, value) = (x(10f64.powi(power)), 10f64.powi(power));
        writeln!(svg, "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#d0d7de\"/>")?;
        let below = bottom + 16.0;
        writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{value}</text>")?;
    }
    for power in low as i32..=high as i32 {
        let (at, value, end) = (y(10f64.powi(power)), 10f64.powi(power), WIDTH - MARGIN);
        writeln!(svg, "<path d=\"M{MARGIN} {at:.1}H{end}\" stroke=\"#d0d7de\"/>")?;
        let before = MARGIN - 6.0;
        writeln!(svg, "<text x=\"{before}\" y=\"{at:.1}\" text-anchor=\"end\">{value}</text>")?;
    }
    let (middle, foot) = (WIDTH / 2.0, HEIGHT - 16.0);
    writeln!(svg, "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">{across}</text>")?;
    writeln!(svg, "<text x=\"{MARGIN}\" y=\"20\">{up}</text>")?;
    for (index, ((name, points), colour)) in lines.iter().zip(COLOURS).enumerate() {
        let path: Vec<_> =
            points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let path = path.join(" ");
        writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\"/>")?;
        let (at, line) = (MARGIN + 8.0, MARGIN - 20.0 + 14.0 * index as f64);
        writeln!(svg, "<text x=\"{at}\" y=\"{line}\" fill=\"{colour}\">{name}</text>")?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// The powers of ten that enclose all these, at least two.
fn powers(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value.log10().floor()), high.max(value.log10().ceil()))
    });
    (low, high.max(low + 1.0))
}
