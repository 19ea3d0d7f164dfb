//! Makes foreign text safe to show in a log or on a terminal, and reads filters of log lines.

use std::fmt::{self, Display, Write};

/// The text with [harmful](is_harmful) characters escaped, cut to about `max` bytes. Formats no more than that, so
/// that names that grow without end when demangled cost no more than others.
#[must_use]
pub fn harmless(text: impl Display, max: usize) -> String {
    let mut clean = Clean { text: String::new(), max };
    // Writing fails once `clean` is full.
    let _full = write!(clean, "{text}");
    clean.text
}

/// Collects safe text until it is full.
struct Clean {
    text: String,
    max: usize,
}

impl Write for Clean {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.text.len() + character.len_utf8() > self.max {
                self.text.push('…');
                return Err(fmt::Error);
            }
            if is_harmful(character) {
                self.text.extend(character.escape_default());
            } else {
                self.text.push(character);
            }
        }
        Ok(())
    }
}

/// The texts of an error and its causes in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Cuts `text` to at most `max` bytes, at a character boundary.
#[must_use]
pub fn truncated(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// Whether a character moves the cursor, forges a line, reverses text or is invisible.
#[must_use]
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        // These end lines or paragraphs, or are annotations that hide text.
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
        || is_unseen(character)
}

/// Whether a character has Unicode's `Default_Ignorable_Code_Point`: direction marks, zero-width characters, variation
/// selectors, tags.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The filter in a text like that of `RUST_LOG`, as `tracing_subscriber::filter::Targets` reads it: levels, and targets
/// with their levels, separated by commas. Leaves out empty parts, which `Targets` would take for the level `error`.
///
/// `None` if the text has no parts, or has a `[`, which begins a span or its fields: `Targets` cannot filter by those.
#[must_use]
pub fn log_filter(text: &str) -> Option<String> {
    let parts: Vec<_> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty() && !text.contains('[')).then(|| parts.join(","))
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn nothing_that_plays_with_a_text_or_hides_in_it_is_left(
            seen in "[\\p{Cc}\\p{Zl}\\p{Zp}\\u{fff9}-\\u{fffb}\\p{Default_Ignorable_Code_Point}&&[^\\u{e0000}-\\u{e0fff}]]{64}",
            tags in "[\\u{e0000}-\\u{e0fff}]{64}",
        ) {
            for character in seen.chars().chain(tags.chars()) {
                prop_assert!(is_harmful(character), "{character:?}");
                prop_assert!(harmless(character, 16).is_ascii());
            }
        }

        #[test]
        fn all_other_text_is_shown_as_it_is(text in "[^\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]{0,64}") {
            prop_assert_eq!(harmless(&text, usize::MAX), text);
        }
    }

    #[test]
    fn control_characters_and_direction_marks_are_escaped() {
        assert_eq!(harmless("a\x1b[31mb\nc\u{202e}d\r\0", 100), "a\\u{1b}[31mb\\nc\\u{202e}d\\r\\u{0}");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(harmless("é".repeat(100), 5), "éé…");
    }

    struct Endless;

    impl Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("é")?;
            }
        }
    }

    #[test]
    fn text_is_printed_no_further_than_it_is_shown() {
        assert_eq!(harmless(Endless, 5), "éé…");
    }

    #[test]
    fn empty_parts_are_left_out_and_spans_are_refused() {
        assert_eq!(log_filter("info").as_deref(), Some("info"));
        assert_eq!(log_filter(", info,,a::b=debug ,").as_deref(), Some("info,a::b=debug"));
        assert_eq!(log_filter(" ,"), None);
        assert_eq!(log_filter("weir[run]=debug"), None);
        assert_eq!(log_filter("a[{field}]=debug"), None);
    }
}
