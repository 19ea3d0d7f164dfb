//! Filters of log lines, as an environment variable or a program gives them.

/// What `RUST_LOG` and the like say, as `tracing_subscriber::filter::Targets` reads it: levels, and targets with their
/// levels, separated by commas. Empty parts are left out, which it would take for the level `error`.
///
/// None if the text says nothing, or names spans or fields, which it cannot filter by.
#[must_use]
pub fn log_filter(text: &str) -> Option<String> {
    let parts: Vec<_> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty() && !text.contains('[')).then(|| parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_left_out_and_spans_are_refused() {
        assert_eq!(log_filter("info").as_deref(), Some("info"));
        assert_eq!(log_filter(", info,,a::b=debug ,").as_deref(), Some("info,a::b=debug"));
        assert_eq!(log_filter(" ,"), None);
        assert_eq!(log_filter("weir[run]=debug"), None);
        assert_eq!(log_filter("a[{field}]=debug"), None);
    }
}
