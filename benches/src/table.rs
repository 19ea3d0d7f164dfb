//! Figures as text for people.

use comfy_table::{CellAlignment, Table, presets};

use crate::{
    figure::{Figure, Met, Unit},
    page::{Entry, Record},
};

/// The columns of a table of figures. On the page, `spread` is left out, and each other run has a column.
const HEADER: [&str; 7] = ["case", "metric", "value", "baseline", "ratio", "target", "spread"];

/// The first columns of the summary. A column for each kind of processor follows.
const SUMMARY: [&str; 5] = ["scenario", "case", "metric", "target", "stretch"];

/// The number of columns with words. Columns with numbers follow.
const WORDS: usize = 2;

/// What is measured to explain other figures, and is in the record alone: metrics of a scenario, or, with `-` at the
/// end, beginnings of cases.
pub(crate) const NOT_ON_THE_PAGE: [(&str, &[&str]); 8] = [
    ("footprint", &["private RSS, written", "private RSS, as in a file"]),
    ("gateway", &["cpu per request, server", "p99 of the last delivery"]),
    ("broadcast", &["p99 of the last delivery", "events"]),
    ("shared-channel", &["cpu"]),
    ("ping-pong", &["user time", "system time", "total time"]),
    ("startup", &["bench-guest-"]),
    ("isolation", &["max", "p99 spread"]),
    ("kill", &["max", "p99 of the timer"]),
];

/// A table for the terminal.
pub(crate) fn terminal(figures: &[Figure]) -> String {
    aligned(&HEADER, WORDS, figures.iter().map(row))
}

/// A table for a page: the first of these runs, and beside it what the others reached.
pub(crate) fn scenario(runs: &[Entry]) -> String {
    let Some((first, others)) = runs.split_first() else { return String::new() };
    let names = others.iter().map(|run| match &run.instead {
        Some(instead) => instead.clone(),
        None => format!("{}, {}", run.processor(), run.date),
    });
    let header = HEADER.iter().take(6).map(|name| (*name).to_owned()).chain(names).collect::<Vec<_>>();
    let mut rows: Vec<&Figure> = first.figures.iter().collect();
    // Another machine, emulated, has cases of its own.
    let is_emulated =
        |run: &&Entry| run.instead.as_ref().is_some_and(|instead| instead.ends_with("emulated"));
    for figure in others.iter().filter(is_emulated).flat_map(|run| &run.figures) {
        if find(&first.figures, figure).is_none() && !rows.iter().any(|row| row.is_same(figure)) {
            rows.push(figure);
        }
    }
    let rows = rows.into_iter().filter(|figure| is_on_the_page(figure)).map(|figure| {
        let [case, metric, value, baseline, ratio, target, _] = row(figure);
        let cells = match (find(&first.figures, figure), figure.ratio) {
            (None, _) => [const { String::new() }; 3],
            (_, Some(_)) => [value, baseline, reached(figure)],
            (_, None) => [reached(figure), baseline, ratio],
        };
        let beside = others.iter().map(|run| find(&run.figures, figure).map(reached).unwrap_or_default());
        [case, metric].into_iter().chain(cells).chain([target]).chain(beside).collect()
    });
    piped(&header, WORDS, rows)
}

/// A table for a page: each target, and what was reached on each kind of processor.
pub(crate) fn summary(record: &Record) -> String {
    let processors = record.processors();
    let runs = record.entries.iter().filter(|entry| entry.instead.is_none()).collect::<Vec<_>>();
    let mut rows: Vec<&Figure> = Vec::new();
    for figure in runs.iter().flat_map(|run| &run.figures).filter(|figure| figure.target.is_some()) {
        if !rows.iter().any(|row| row.is_same(figure)) {
            rows.push(figure);
        }
    }
    let rows = rows.into_iter().map(|figure| {
        let bound = |bound: Option<f64>| bound.map(|bound| at_most(figure, bound)).unwrap_or_default();
        let cells = processors.iter().map(|name| {
            let mut of_name = runs.iter().filter(|run| run.processor() == *name);
            of_name.find_map(|run| find(&run.figures, figure)).map(reached).unwrap_or_default()
        });
        let names = [&figure.scenario, &figure.case, &figure.metric].map(String::clone);
        names.into_iter().chain([bound(figure.target), bound(figure.stretch)]).chain(cells).collect()
    });
    let header = SUMMARY.map(str::to_owned).into_iter().chain(processors.iter().cloned()).collect::<Vec<_>>();
    piped(&header, WORDS + 1, rows)
}

fn find<'a>(figures: &'a [Figure], same: &Figure) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.is_same(same))
}

fn is_on_the_page(figure: &Figure) -> bool {
    let mut of_scenario = NOT_ON_THE_PAGE.iter().filter(|(scenario, _)| figure.scenario == *scenario);
    !of_scenario.any(|(_, names)| names.iter().any(|name| is_named(figure, name)))
}

/// Whether the figure's metric has this name, or its case begins with it. Only a name with `-` at its end names cases.
pub(crate) fn is_named(figure: &Figure, name: &str) -> bool {
    figure.metric == name || (name.ends_with('-') && figure.case.starts_with(name))
}

/// What was reached, as text: in bold if it misses the target.
fn reached(figure: &Figure) -> String {
    let reached = compared(figure, figure.reached());
    if figure.met() == Some(Met::No) { format!("**{reached}**") } else { reached }
}

/// A line for each target that is not met.
pub(crate) fn missed(figures: &[Figure]) -> String {
    let missed = figures.iter().filter(|figure| figure.met() == Some(Met::No));
    let line = |figure: &Figure| {
        let Figure { scenario, case, metric, .. } = figure;
        let (reached, target) = (compared(figure, figure.reached()), row(figure)[5].clone());
        format!("target missed: {scenario}, {case}, {metric}: {reached}, and not {target}\n")
    };
    missed.map(line).collect()
}

/// How two runs differ in figures that have a baseline or a target, the most different first.
pub(crate) fn differences(one: &[Figure], other: &[Figure]) -> String {
    let comparable = |figure: &&Figure| figure.ratio.or(figure.target).is_some();
    let pairs = one.iter().filter(comparable).filter_map(|a| Some((a, find(other, a)?)));
    let mut rows: Vec<_> = pairs
        .map(|(a, b)| {
            let (less, more) = (a.reached().min(b.reached()), a.reached().max(b.reached()));
            // Two zeros do not differ, but their quotient is no number.
            (if less == more { 0.0 } else { more / less - 1.0 }, a, b)
        })
        .collect();
    rows.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let cells = |(difference, a, b): (f64, &Figure, &Figure)| {
        let (case, metric) = (a.case.clone(), a.metric.clone());
        [
            a.scenario.clone(),
            case,
            metric,
            compared(a, a.reached()),
            compared(b, b.reached()),
            percent(difference),
        ]
    };
    let header = ["scenario", "case", "metric", "one", "other", "difference"];
    aligned(&header, WORDS + 1, rows.into_iter().map(cells))
}

fn aligned<const N: usize>(
    header: &[&str; N],
    words: usize,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.map(str::to_uppercase));
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn piped(header: &[String], words: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let marks: String =
        (0..header.len()).map(|column| if column < words { " --- |" } else { " ---: |" }).collect();
    let rows = rows.map(|cells| format!("| {} |\n", cells.join(" | ")));
    format!("| {} |\n|{marks}\n{}", header.join(" | "), rows.collect::<String>())
}

fn row(figure: &Figure) -> [String; 7] {
    let amount = |value| amount(value, figure.unit);
    [
        figure.case.clone(),
        figure.metric.clone(),
        amount(figure.value),
        figure.baseline.map(amount).unwrap_or_default(),
        figure.ratio.map(ratio).unwrap_or_default(),
        figure.target.map(|target| at_most(figure, target)).unwrap_or_default(),
        figure.spread.map(percent).unwrap_or_default(),
    ]
}

/// A bound as text, with every digit, since each means something.
fn at_most(figure: &Figure, bound: f64) -> String {
    let unit = if figure.ratio.is_some() { "" } else { figure.unit.symbol() };
    let bound = if is_part(bound) { ratio(bound) } else { bound.to_string() };
    format!("≤ {bound} {unit}").trim_end().to_owned()
}

/// A number as text in the terms of the figure's target: as a ratio, or else in the figure's unit.
fn compared(figure: &Figure, value: f64) -> String {
    if figure.ratio.is_some() { ratio(value) } else { amount(value, figure.unit) }
}

fn amount(value: f64, unit: Unit) -> String {
    let whole = unit == Unit::Count && value.fract() == 0.0;
    let number = if whole { value.to_string() } else { number(value) };
    format!("{number} {}", unit.symbol()).trim_end().to_owned()
}

/// A ratio as text. A small one is shown as one of so many parts.
fn ratio(ratio: f64) -> String {
    if is_part(ratio) { format!("1/{:.0}", ratio.recip()) } else { number(ratio) }
}

fn is_part(ratio: f64) -> bool {
    ratio > 0.0 && ratio < 0.1
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// A number as text, with about three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> [Figure; 4] {
        let figure = |case, unit, value| Figure::new("s", case, "m", unit, value);
        [
            figure("alone", Unit::Microseconds, 1234.5),
            figure("beside", Unit::Slices, 5.0).at_most(20.0),
            Figure::of_rounds("s", "rounds", "m", Unit::Times, &[2.0, 4.0, 8.0])
                .beside_rounds(&[2.0, 4.0, 8.0], &[80.0, 80.0, 80.0])
                .at_most(0.05)
                .stretch(0.04),
            figure("idle", Unit::Count, 3.0).beside(0.0).at_most(0.0),
        ]
    }

    fn run(processor: &str, figures: Vec<Figure>) -> Entry {
        Entry {
            scenario: "s".to_owned(),
            date: "2026-11-22".to_owned(),
            scale: "full".to_owned(),
            machine: format!("{processor}, 2 cores"),
            instead: None,
            figures,
        }
    }

    #[test]
    fn a_figure_without_a_baseline_leaves_its_cells_empty() {
        assert_eq!(
            scenario(&[run("A", figures().to_vec())]),
            "| case | metric | value | baseline | ratio | target |\n\
             | --- | --- | ---: | ---: | ---: | ---: |\n\
             | alone | m | 1234 µs |  |  |  |\n\
             | beside | m | 5.00 slices |  |  | ≤ 20 slices |\n\
             | rounds | m | 4.00 × | 80.0 × | 1/20 | ≤ 1/20 |\n\
             | idle | m | **3** | 0 |  | ≤ 0 |\n"
        );
    }

    #[test]
    fn other_runs_have_a_column_and_only_emulated_ones_add_rows() {
        let [alone, beside, ..] = figures();
        let of = |value| vec![Figure::new("s", "other", "m", Unit::Count, value), beside.clone()];
        let instead = Entry { instead: Some("emulated".to_owned()), ..run("A", of(3.0)) };
        assert_eq!(
            scenario(&[run("A", vec![alone, beside.clone()]), run("B", of(2.0)), instead]),
            "| case | metric | value | baseline | ratio | target | B, 2026-11-22 | emulated |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n\
             | alone | m | 1234 µs |  |  |  |  |  |\n\
             | beside | m | 5.00 slices |  |  | ≤ 20 slices | 5.00 slices | 5.00 slices |\n\
             | other | m |  |  |  |  | 2 | 3 |\n"
        );
    }

    #[test]
    fn what_explains_other_figures_is_in_the_record_alone() {
        let of = |case, metric| vec![Figure::new("shared-channel", case, metric, Unit::Count, 1.0)];
        let table = scenario(&[run("A", [of("a", "cpu"), of("a", "cpu per job")].concat())]);
        assert!(!table.contains("| a | cpu |") && table.contains("| a | cpu per job |"), "{table}");
    }

    #[test]
    fn the_summary_has_what_has_a_target_with_a_column_for_each_processor() {
        let later = vec![Figure::new("s", "beside", "m", Unit::Slices, 50.0).at_most(20.0)];
        let interpreted =
            Entry { instead: Some("an interpreter".to_owned()), ..run("B", figures().to_vec()) };
        let entries = vec![run("B", later), run("A", figures().to_vec()), interpreted];
        assert_eq!(
            summary(&Record { entries }),
            "| scenario | case | metric | target | stretch | A | B |\n\
             | --- | --- | --- | ---: | ---: | ---: | ---: |\n\
             | s | beside | m | ≤ 20 slices |  | 5.00 slices | **50.0 slices** |\n\
             | s | rounds | m | ≤ 1/20 | ≤ 1/25 | 1/20 |  |\n\
             | s | idle | m | ≤ 0 |  | **3** |  |\n"
        );
    }

    #[test]
    fn a_missed_target_is_told_in_a_line() {
        assert_eq!(missed(&figures()), "target missed: s, idle, m: 3, and not ≤ 0\n");
    }

    #[test]
    fn what_differs_most_between_two_runs_comes_first() {
        let run = |ratios: [f64; 3]| {
            let figure = |(case, ratio)| Figure::new("s", case, "m", Unit::Times, ratio).beside(1.0);
            ["a", "b", "c"].into_iter().zip(ratios).map(figure).collect::<Vec<_>>()
        };
        let text = differences(&run([1.0, 4.0, 0.0]), &run([1.5, 2.0, 0.0]));
        let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(
            words.skip(1).collect::<Vec<_>>(),
            ["s b m 4.00 2.00 100 %", "s a m 1.00 1.50 50 %", "s c m 0 0 0 %"]
        );
    }
}
