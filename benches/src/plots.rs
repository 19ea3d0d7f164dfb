//! The plots: which figures each shows, and on which axes.

mod axis;
mod draw;

use anyhow::Result;

use crate::figure::Figure;

struct Plot {
    name: &'static str,
    scenario: &'static str,
    title: &'static str,
    x: Axis,
    y: Axis,
    lines: &'static [Line],
}

struct Axis {
    title: &'static str,
    logarithmic: bool,
}

/// The figures of one metric, placed by their cases.
struct Line {
    title: &'static str,
    metric: &'static str,
    of: Side,
    /// The place of a case, if it belongs to this line.
    x: fn(&str) -> Option<f64>,
}

enum Side {
    Weir,
    Baseline,
}

const PLOTS: [Plot; 5] = [
    Plot {
        name: "idle-ticks",
        scenario: "idle",
        title: "What it takes so many to wait",
        x: logarithmic("extensions"),
        y: linear("clock ticks of 10 ms"),
        lines: &[weir("Weir", "ticks", waiting), baseline("native: polled every 5 ms", "ticks", waiting)],
    },
    Plot {
        name: "footprint-private",
        scenario: "footprint",
        title: "Memory of Main with so many extensions",
        x: logarithmic("extensions"),
        y: logarithmic("private memory (MiB)"),
        lines: &[
            weir("Weir", "private RSS", footprint),
            baseline("native: a thread with a runtime each", "private RSS", footprint),
        ],
    },
    Plot {
        name: "round-trip-time",
        scenario: "round-trip",
        title: "Main to an extension and back",
        x: logarithmic("payload (bytes)"),
        y: logarithmic("time of a round trip (ns)"),
        lines: &[
            weir("Weir", "time per call", bytes),
            baseline("tokio tasks, async-channel", "time per call", bytes),
            weir("two channels, none for each call", "time per call", |case| {
                bytes(case.strip_suffix(", two channels")?)
            }),
        ],
    },
    Plot {
        name: "broadcast-cpu",
        scenario: "broadcast",
        title: "One topic, 1024 subscribers, 800 kbit/s each",
        x: logarithmic("packet size (KB)"),
        y: logarithmic("processor time (% of one processor)"),
        lines: &[
            weir("Weir", "cpu", packet),
            baseline("native: a bounded channel each", "cpu", packet),
            weir("tokio::sync::broadcast", "cpu", |case| {
                packet(case.strip_prefix("tokio::sync::broadcast, ")?)
            }),
        ],
    },
    Plot {
        name: "shared-channel-time",
        scenario: "shared-channel",
        title: "One queue, as many jobs for ever more readers",
        x: linear("readers, and as many writers"),
        y: linear("time until the last job is done (ms)"),
        lines: &[
            weir("Weir: extensions", "time", extensions),
            baseline("native: tasks", "time", extensions),
            weir("Weir: half threads", "time", half),
            baseline("native: half threads", "time", half),
        ],
    },
];

#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) title: &'static str,
    pub(crate) file: String,
    pub(crate) svg: String,
}

/// The plots of a scenario. A plot without figures is left out.
pub(crate) fn drawn(scenario: &str, figures: &[Figure]) -> Result<Vec<Drawn>> {
    let mut drawn = Vec::new();
    for plot in PLOTS.iter().filter(|plot| plot.scenario == scenario) {
        let lines: Vec<_> = plot.lines.iter().map(|line| (line.title, line.points(figures))).collect();
        // One place makes no line.
        if lines.iter().all(|(_, points)| points.len() > 1) {
            let svg = draw::svg(plot, &lines)?;
            drawn.push(Drawn { title: plot.title, file: format!("{}.svg", plot.name), svg });
        }
    }
    Ok(drawn)
}

impl Line {
    /// In the order of their places.
    fn points(&self, figures: &[Figure]) -> Vec<(f64, f64)> {
        let point = |figure: &Figure| {
            let y = match self.of {
                Side::Weir => Some(figure.value),
                Side::Baseline => figure.baseline,
            };
            Some(((self.x)(&figure.case)?, y?))
        };
        let figures = figures.iter().filter(|figure| figure.metric == self.metric);
        let mut points: Vec<_> = figures.filter_map(point).collect();
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        points
    }
}

const fn weir(title: &'static str, metric: &'static str, x: fn(&str) -> Option<f64>) -> Line {
    Line { title, metric, of: Side::Weir, x }
}

const fn baseline(title: &'static str, metric: &'static str, x: fn(&str) -> Option<f64>) -> Line {
    Line { title, metric, of: Side::Baseline, x }
}

const fn linear(title: &'static str) -> Axis {
    Axis { title, logarithmic: false }
}

const fn logarithmic(title: &'static str) -> Axis {
    Axis { title, logarithmic: true }
}

/// Of `10 waiting`.
fn waiting(case: &str) -> Option<f64> {
    case.strip_suffix(" waiting")?.parse().ok()
}

/// Of `7 extensions` or `1000 idle`.
fn footprint(case: &str) -> Option<f64> {
    case.strip_suffix(" extensions").or(case.strip_suffix(" idle"))?.parse().ok()
}

/// Of `1 KiB`.
fn bytes(case: &str) -> Option<f64> {
    let (count, unit) = case.split_once(' ')?;
    let unit = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        _ => return None,
    };
    Some(count.parse::<f64>().ok()? * unit)
}

/// Of `1 KB every 10 ms`.
fn packet(case: &str) -> Option<f64> {
    case.split_once(" KB every ")?.0.parse().ok()
}

fn extensions(case: &str) -> Option<f64> {
    case.strip_prefix("all extensions, ")?.parse().ok()
}

fn half(case: &str) -> Option<f64> {
    case.strip_prefix("half native threads, ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Unit;

    fn broadcast(case: &str, value: f64) -> Figure {
        Figure::new("broadcast", case, "cpu", Unit::Percent, value).beside(value / 4.0)
    }

    fn all() -> Vec<Figure> {
        [(20, 200), (1, 10)]
            .into_iter()
            .flat_map(|(bytes, interval)| {
                let case = format!("{bytes} KB every {interval} ms");
                let beside = format!("tokio::sync::broadcast, {case}");
                [broadcast(&case, 60.0 / f64::from(bytes)), broadcast(&beside, 1.0)]
            })
            .collect()
    }

    #[test]
    fn a_line_has_its_own_cases_in_order() {
        let line = weir("", "cpu", packet);
        assert_eq!(line.points(&all()), [(1.0, 60.0), (20.0, 3.0)]);
        assert_eq!(
            [bytes("16 B"), bytes("10 KiB"), bytes("1 KiB, pipelined")],
            [Some(16.0), Some(10240.0), None]
        );
    }

    #[test]
    fn a_plot_whose_figures_are_not_there_is_left_out() {
        let drawn = |figures: &[Figure]| super::drawn("broadcast", figures).unwrap();
        let plots = drawn(&all());
        let [plot] = plots.as_slice() else { panic!("{plots:?}") };
        for text in ["tokio::sync::broadcast", "packet size (KB)", "processor time", "Weir"] {
            assert!(plot.svg.contains(text), "no {text} in {}", plot.svg);
        }
        assert!(drawn(&all()[..3]).is_empty());
        assert_eq!(drawn(&all())[0].svg, plot.svg);
    }
}
