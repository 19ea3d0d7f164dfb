//! A plot as SVG. The text does not depend on the machine's fonts.

use anyhow::Result;
use plotters::prelude::*;

use super::{Plot, axis::Coordinates};

const SIZE: (u32, u32) = (760, 440);

const HEAD: u32 = 64;

/// By Okabe and Ito, for all kinds of colour vision, on white.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

const FONT: &str = "sans-serif";

pub(super) fn svg(plot: &Plot, lines: &[(&str, Vec<(f64, f64)>)]) -> Result<String> {
    let mut svg = String::new();
    draw(plot, lines, SVGBackend::with_string(&mut svg, SIZE))?;
    Ok(svg)
}

fn draw(plot: &Plot, lines: &[(&str, Vec<(f64, f64)>)], backend: SVGBackend<'_>) -> Result<()> {
    let area = backend.into_drawing_area();
    // Independent of the background of the page.
    area.fill(&WHITE)?;
    let (head, body) = area.split_vertically(HEAD);
    head.draw(&Text::new(plot.title, (20, 12), (FONT, 18)))?;
    let points = || lines.iter().flat_map(|(_, points)| points);
    let x = Coordinates::of_places(plot.x.logarithmic, points().map(|(x, _)| *x).collect());
    let y = Coordinates::of_amounts(plot.y.logarithmic, &points().map(|(_, y)| *y).collect::<Vec<_>>());
    let mut chart = ChartBuilder::on(&body)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(plot.x.title)
        .y_desc(plot.y.title)
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    let mut left = 20;
    for ((title, points), colour) in lines.iter().zip(COLOURS) {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
        head.draw(&Rectangle::new([(left, 45), (left + 18, 49)], colour.filled()))?;
        head.draw(&Text::new(*title, (left + 24, 40), (FONT, 14)))?;
        left += 24 + width(title) + 22;
    }
    area.present()?;
    Ok(())
}

/// The approximate width of a text in the legend: there may be no font to ask.
fn width(text: &str) -> i32 {
    i32::try_from(text.chars().count() * 7).unwrap_or(i32::MAX)
}
