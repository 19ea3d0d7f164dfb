//! Text of strangers, made safe to show in a log or on a terminal.

/// `text` with control characters escaped, cut to about `max` bytes.
#[must_use]
pub fn harmless(text: &str, max: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(max));
    for character in text.chars() {
        if clean.len() + character.len_utf8() > max {
            clean.push('…');
            break;
        }
        if is_harmful(character) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
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
        assert_eq!(harmless(&"é".repeat(100), 5), "éé…");
    }
}
