//! Published figures of the same work, measured elsewhere: one line each. `docs/benchmarks.md` names their
//! sources and machines.

use crate::figure::Figure;

/// Scenario, case, metric, and the published figure.
const PUBLISHED: [(&str, &str, &str, &str); 31] = [
    // Ripple on a device: with polled channels, and after them.
    ("idle", "10 waiting", "cpu", "6.2 % → 0 %"),
    ("footprint", "7 extensions", "threads", "15 → 7"),
    ("footprint", "7 extensions", "virtual", "96.5 → 39 MB"),
    ("footprint", "7 extensions", "resident", "27.4 → 17.6 MB"),
    ("footprint", "7 extensions", "shared", "20.2 → 10.4 MB"),
    ("footprint", "7 extensions", "private RSS", "24.8 → 17.3 MB"),
    ("footprint", "7 extensions", "shared RSS", "12.4 → 1.6 MB"),
    // tokio-broadcast-bench: v0.1, v0.2.
    ("broadcast", "20 KB every 200 ms", "cpu", "14 %, 17 %"),
    ("broadcast", "10 KB every 100 ms", "cpu", "17 %, 21 %"),
    ("broadcast", "5 KB every 50 ms", "cpu", "28 %, 32 %"),
    ("broadcast", "2 KB every 20 ms", "cpu", "61 %, 58 %"),
    ("broadcast", "1 KB every 10 ms", "cpu", "93 %, 88 %"),
    // The same, which is over TCP.
    ("gateway", "streams, 20 KB every 200 ms", "cpu", "14 %, 17 %"),
    ("gateway", "streams, 10 KB every 100 ms", "cpu", "17 %, 21 %"),
    ("gateway", "streams, 5 KB every 50 ms", "cpu", "28 %, 32 %"),
    ("gateway", "streams, 2 KB every 20 ms", "cpu", "61 %, 58 %"),
    ("gateway", "streams, 1 KB every 10 ms", "cpu", "93 %, 88 %"),
    // MLOS on the Xeon: before its improvement, and after.
    ("shared-channel", "all extensions, 1", "time", "830 → 713 ms"),
    ("shared-channel", "all extensions, 2", "time", "1171 → 924 ms"),
    ("shared-channel", "all extensions, 4", "time", "1566 → 1084 ms"),
    ("shared-channel", "all extensions, 8", "time", "2213 → 1290 ms"),
    ("shared-channel", "all extensions, 12", "time", "4958 → 1841 ms"),
    ("shared-channel", "all extensions, 16", "time", "7825 → 1970 ms"),
    ("shared-channel", "all extensions, 20", "time", "8262 → 2364 ms"),
    ("shared-channel", "all extensions, 24", "time", "8606 → 2387 ms"),
    ("shared-channel", "growth-1-to-24", "all extensions", "10.4 → 3.35 ×"),
    // nuprocess-perf: ZIO 1.0.0-RC16, 2.0.0-RC6.
    ("hooks", "alternating, blocking", "time per node", "11.3 ms, 5.5 ms"),
    ("hooks", "in sequence, blocking", "time per node", "6.8 ms, 5.2 ms"),
    // yaay-rs, and tokio as measured there: spawning, and 1000 connections with 4 threads.
    ("spawn", "tokio::spawn", "start to end", "0.33 µs, 0.45 µs"),
    ("ping-pong", "over TCP, 100 × 10 connections", "time per exchange", "5995 ns, 6438 ns"),
    ("ping-pong", "over TCP, 100 × 10 connections", "cpu", "451 %, 398 %"),
];

/// The published counterpart of a figure.
pub(crate) fn published(figure: &Figure) -> Option<&'static str> {
    let of = (figure.scenario.as_str(), figure.case.as_str(), figure.metric.as_str());
    PUBLISHED
        .iter()
        .find_map(|&(scenario, case, metric, text)| (of == (scenario, case, metric)).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs;

    #[test]
    fn whatever_was_published_stands_beside_a_figure() {
        for entry in docs::committed().entries.into_iter().filter(|entry| entry.instead.is_none()) {
            let published_of = PUBLISHED.iter().filter(|(scenario, ..)| *scenario == entry.scenario).count();
            let shown = entry.figures.iter().filter_map(published).count();
            assert_eq!(shown, published_of, "{}", entry.scenario);
        }
    }
}
