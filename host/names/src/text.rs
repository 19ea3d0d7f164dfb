//! Text of strangers, made safe to show in a log or on a terminal.

use std::fmt::{self, Display, Write};

/// What `text` prints, with control characters escaped, cut to about `max` bytes. It is asked to print no more than that:
/// names that grow without end as they are demangled cost no more than others.
#[must_use]
pub fn harmless(text: impl Display, max: usize) -> String {
    let mut clean = Clean { text: String::new(), max };
    // It is stopped where there is no room for more.
    let _full = write!(clean, "{text}");
    clean.text
}

/// Takes what is safe to show, until it is full.
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

/// `text`, cut at a character boundary to at most `max` bytes.
#[must_use]
pub fn truncated(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// Whether a character could move the cursor, forge a line or turn text around.
#[must_use]
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_direction_marks_are_escaped() {
        assert_eq!(harmless("a\x1b[31mb\nc\u{202e}d\r\0", 100), "a\\u{1b}[31mb\\nc\\u{202e}d\\r\\u{0}");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(harmless("é".repeat(100), 5), "éé…");
    }

    /// Text that never ends by itself.
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
}
