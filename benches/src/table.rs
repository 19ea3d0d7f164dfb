//! Figures as text for people.

use comfy_table::{CellAlignment, Table, presets};

use crate::figure::Figure;

const HEADER: [&str; 5] = ["case", "metric", "value", "baseline", "ratio"];

/// A table for the terminal.
pub(crate) fn terminal(figures: &[Figure]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER.map(str::to_uppercase));
    table.add_rows(figures.iter().map(row));
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A table for a page.
pub(crate) fn markdown(figures: &[Figure]) -> String {
    let line = |cells: [String; 5]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(HEADER.map(str::to_owned));
    text.push_str("| --- | --- | ---: | ---: | ---: |\n");
    text.extend(figures.iter().map(row).map(line));
    text
}

fn row(figure: &Figure) -> [String; 5] {
    let unit = figure.unit.symbol();
    let with_unit = |value: f64| format!("{} {unit}", number(value));
    [
        figure.case.clone(),
        figure.metric.to_owned(),
        with_unit(figure.value),
        figure.baseline.map(with_unit).unwrap_or_default(),
        figure.ratio.map(number).unwrap_or_default(),
    ]
}

/// Three digits that mean something are enough.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Unit;

    #[test]
    fn a_figure_without_a_baseline_leaves_its_cells_empty() {
        let figures = [
            Figure::new("s", "alone", "p50", Unit::Microseconds, 1234.5),
            Figure::new("s", "beside", "p99", Unit::Slices, 5.0).beside(20.0),
        ];
        assert_eq!(
            markdown(&figures),
            "| case | metric | value | baseline | ratio |\n| --- | --- | ---: | ---: | ---: |\n\
             | alone | p50 | 1234 µs |  |  |\n| beside | p99 | 5.00 slices | 20.0 slices | 0.25 |\n"
        );
    }
}
