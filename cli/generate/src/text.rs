//! The text of the output: lines, comments, literals. What comes from a contract is not trusted: here it becomes a
//! comment or a literal that means nothing else.

use std::fmt::Write;

/// Source text that grows line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    text: String,
    /// The spaces before each line.
    margin: String,
}

impl Code {
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.push_str(&self.margin);
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Writes an empty line, if something is written already.
    pub(crate) fn empty_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Writes an empty line, unless there is one, or a block begins here.
    pub(crate) fn gap(&mut self) {
        let begins = self.text.trim_end().ends_with(['{', '[', '(', ':']);
        if !self.text.is_empty() && !self.text.ends_with("\n\n") && !begins {
            self.text.push('\n');
        }
    }

    /// Writes what `write` writes, with a larger margin.
    pub(crate) fn inside(&mut self, by: &str, write: impl FnOnce(&mut Self)) {
        self.margin.push_str(by);
        write(self);
        self.margin.truncate(self.margin.len().saturating_sub(by.len()));
    }

    /// Writes a block: this first line, what `write` writes with a larger margin, and `}`.
    pub(crate) fn block(&mut self, head: impl AsRef<str>, by: &str, write: impl FnOnce(&mut Self)) {
        self.line(head);
        self.inside(by, write);
        self.line("}");
    }

    /// Writes text of several lines.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    /// Adds text to the end of the last line.
    pub(crate) fn append(&mut self, end: &str) {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text.push_str(end);
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        let mut text = self.text.trim_end().to_owned();
        text.push('\n');
        text
    }
}

/// The most characters of a line of a comment.
pub(crate) const WIDTH: usize = 100;

/// Breaks a description into lines of a comment.
///
/// Nothing in it is code that a tool would run: no line is indented, and no fence of a block of code is left. Hidden
/// characters are escaped.
pub(crate) fn prose(description: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in description.trim().split('\n') {
        let mut current = String::new();
        for word in line.split_whitespace().map(plain_word) {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(&word);
        }
        // One empty line between paragraphs is kept, and further ones are not.
        if !current.is_empty() || lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(current);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Writes a description as an item of a list in a comment. Its further lines are further in.
pub(crate) fn item(name: &str, description: &str) -> Vec<String> {
    let words: Vec<&str> = description.split_whitespace().collect();
    let text = if words.is_empty() { format!("- {name}") } else { format!("- {name}: {}", words.join(" ")) };
    let lines = prose(&text).into_iter().enumerate();
    lines.map(|(index, line)| if index == 0 { line } else { format!("  {line}") }).collect()
}

fn plain_word(word: &str) -> String {
    let mut plain = String::new();
    let mut run = 0;
    for character in word.chars() {
        run = if plain.ends_with(character) { run + 1 } else { 1 };
        // A third such character in a row would begin a block of code, or a test in Python.
        if run > 2 && matches!(character, '`' | '~' | '>') {
            continue;
        }
        if is_plain(character) {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// Whether a character shows as itself, and does not move others.
fn is_plain(character: char) -> bool {
    matches!(character, '\'' | '"' | '\\') || character.escape_debug().len() == 1
}

/// Writes a string literal. `escape` writes a character that does not show, by its number.
pub(crate) fn literal(text: &str, escape: impl Fn(u32) -> String) -> String {
    let mut literal = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            character if is_plain(character) => literal.push(character),
            character => literal.push_str(&escape(character.into())),
        }
    }
    literal.push('"');
    literal
}

/// Whether a whole word of the text is this name, or begins with a name that ends with `.`. Words consist of letters,
/// digits and `parts`.
pub(crate) fn has_word(text: &str, name: &str, parts: &[char]) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || parts.contains(&character);
    text.match_indices(name).any(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let rest = rest.strip_prefix(name).unwrap_or(rest);
        !before.ends_with(is_part) && (name.ends_with('.') || !rest.starts_with(is_part))
    })
}

/// Lists names as `a`, `b` and `c`.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let before = match index {
            0 => "",
            index if index + 1 == names.len() => " and ",
            _ => ", ",
        };
        // Writing into a string does not fail.
        let _written = write!(text, "{before}`{name}`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_holds_no_code_that_a_tool_would_run() {
        let description = "Text:\n\n```\n    panic!()\n~~~~ sh\n>>> import os\n";
        assert_eq!(prose(description), ["Text:", "", "``", "panic!()", "~~ sh", ">> import os"]);
    }

    #[test]
    fn what_does_not_show_is_escaped() {
        assert_eq!(prose("a\u{202e}b\u{7}"), ["a\\u{202e}b\\u{7}"]);
        assert_eq!(literal("a\"\\\n\u{202e}ä", |code| format!("<{code:x}>")), "\"a\\\"\\\\<a><202e>ä\"");
    }

    #[test]
    fn a_long_line_of_a_comment_is_broken() {
        let lines = prose(&"word ".repeat(30));
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [99, 49]);
    }
}
