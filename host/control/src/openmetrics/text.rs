//! The text format of OpenMetrics 1.0, and the one before it.

use std::fmt::{self, Display, Write};

/// Families of metrics as text, one after the other.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    /// Whether to write version 0.0.4 of Prometheus's own format: it names a counter's family as its samples, and has
    /// no units.
    is_classic: bool,
}

/// One family, to which samples are added.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    /// What follows the name in each sample.
    suffix: &'static str,
}

/// The name of a label, and what shows its value.
pub(super) type Label<'a> = (&'static str, &'a dyn Display);

impl Text {
    pub(super) fn new(is_classic: bool) -> Self {
        Self { text: String::new(), is_classic }
    }

    /// A number that goes up and down. The name ends in its unit, if it has one.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", "", help)
    }

    /// A number that only grows.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", "_total", help)
    }

    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", "", help)
    }

    /// The whole text, with the end mark that only OpenMetrics has.
    pub(super) fn end(mut self) -> String {
        if !self.is_classic {
            self.text += "# EOF\n";
        }
        self.text
    }

    fn family(
        &mut self,
        name: &'static str,
        kind: &'static str,
        suffix: &'static str,
        help: &str,
    ) -> Family<'_> {
        let Self { text, is_classic } = self;
        let ends = if *is_classic { suffix } else { "" };
        text.extend(["# TYPE ", name, ends, " ", kind, "\n"]);
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(unit) && !*is_classic);
        if let Some(unit) = unit {
            text.extend(["# UNIT ", name, " ", unit, "\n"]);
        }
        text.extend(["# HELP ", name, ends, " ", help, "\n"]);
        Family { text, name, suffix }
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.sample_of(self.suffix, labels, value);
    }

    /// A sample of a part of a histogram.
    pub(super) fn sample_of(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        self.text.extend([self.name, suffix]);
        for (place, (name, label)) in labels.iter().enumerate() {
            self.text.extend([if place == 0 { "{" } else { "," }, name, "=\""]);
            // Writing to a string never fails.
            let _always = write!(Escaped(self.text), "{label}");
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _always = writeln!(self.text, " {value}");
    }
}

/// Escapes what the value of a label may not contain.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_their_type_unit_and_help_and_labels_are_escaped() {
        let mut text = Text::default();
        text.gauge("weir_extension_memory_bytes", "Memory.").sample(&[("extension", &"a\"b\\c\nd")], 5);
        text.counter("weir_requests_failed", "Failed.").sample(&[("a", &1), ("b", &2)], 6);
        let expected = r#"# TYPE weir_extension_memory_bytes gauge
# UNIT weir_extension_memory_bytes bytes
# HELP weir_extension_memory_bytes Memory.
weir_extension_memory_bytes{extension="a\"b\\c\nd"} 5
# TYPE weir_requests_failed counter
# HELP weir_requests_failed Failed.
weir_requests_failed_total{a="1",b="2"} 6
# EOF
"#;
        assert_eq!(text.end(), expected);
    }

    #[test]
    fn the_classic_text_names_a_counter_as_its_samples_and_has_neither_units_nor_an_end() {
        let mut text = Text::new(true);
        text.gauge("weir_extension_memory_bytes", "Memory.").sample(&[], 5);
        text.counter("weir_requests_failed", "Failed.").sample(&[], 6);
        let expected = "# TYPE weir_extension_memory_bytes gauge\n\
                        # HELP weir_extension_memory_bytes Memory.\n\
                        weir_extension_memory_bytes 5\n\
                        # TYPE weir_requests_failed_total counter\n\
                        # HELP weir_requests_failed_total Failed.\n\
                        weir_requests_failed_total 6\n";
        assert_eq!(text.end(), expected);
    }
}
