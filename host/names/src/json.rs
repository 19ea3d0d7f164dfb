//! JSON written by the compiler, for constants that end up in a section of a component.

/// Writes as much as fits and counts everything. A first pass learns the length, and a second fills an array of it.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `buffer`. An empty one only counts.
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    /// The number of bytes so far, with those that did not fit.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Adds a text as it is.
    pub const fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Adds a text as a JSON string.
    pub const fn string(&mut self, text: &str) {
        self.string_of(&[text]);
    }

    /// Adds texts together as one JSON string.
    pub const fn string_of(&mut self, texts: &[&str]) {
        self.text("\"");
        each!(text in texts => {
            self.escaped(text.as_bytes());
        });
        self.text("\"");
    }

    /// Adds lines of a doc comment as one JSON string, without the space after `///` and without blank lines at
    /// both ends.
    pub const fn lines(&mut self, lines: &[&str]) {
        self.text("\"");
        let mut rest = without_blank_ends(lines);
        while let [line, tail @ ..] = rest {
            let line = match line.as_bytes() {
                [b' ', line @ ..] => line,
                line => line,
            };
            self.escaped(line.trim_ascii_end());
            if !tail.is_empty() {
                self.text("\\n");
            }
            rest = tail;
        }
        self.text("\"");
    }

    /// Adds a number.
    pub const fn number(&mut self, number: usize) {
        if number >= 10 {
            self.number(number / 10);
        }
        if let Some((_, [digit, ..])) = b"0123456789".split_at_checked(number % 10) {
            self.bytes(&[*digit]);
        }
    }

    const fn escaped(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((plain, tail)) = rest.split_at_checked(plain_length(rest)) {
            self.bytes(plain);
            let [byte, tail @ ..] = tail else { return };
            match byte {
                b'\n' => self.text("\\n"),
                b'\t' => self.text("\\t"),
                b'\r' => self.text("\\r"),
                b'"' | b'\\' => self.bytes(&[b'\\', *byte]),
                _ => {
                    self.text(if *byte < 0x10 { "\\u000" } else { "\\u001" });
                    self.hex(*byte % 0x10);
                }
            }
            rest = tail;
        }
    }

    const fn hex(&mut self, digit: u8) {
        self.bytes(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }]);
    }

    const fn bytes(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some((head, _)) = self.buffer.split_at_mut_checked(end)
            && let Some((_, place)) = head.split_at_mut_checked(self.length)
        {
            place.copy_from_slice(bytes);
        }
        self.length = end;
    }
}

/// Whether two texts are the same: `==` in a `const`.
#[must_use]
pub(crate) const fn is_same(a: &str, b: &str) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    // Compared from the end, because names of one module differ there.
    while let ([a_rest @ .., a_byte], [b_rest @ .., b_byte]) = (a, b) {
        if *a_byte != *b_byte {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    true
}

/// The number of bytes before the first one that a JSON string has to escape.
const fn plain_length(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let [0x20..=0x21 | 0x23..=0x5b | 0x5d.., tail @ ..] = rest {
        rest = tail;
    }
    bytes.len() - rest.len()
}

const fn without_blank_ends<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let mut lines = lines;
    while let [first, rest @ ..] = lines
        && first.trim_ascii().is_empty()
    {
        lines = rest;
    }
    while let [rest @ .., last] = lines
        && last.trim_ascii().is_empty()
    {
        lines = rest;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Writer<'_>)) -> String {
        let mut counter = Writer::new(&mut []);
        write(&mut counter);
        let mut buffer = vec![0; counter.length()];
        write(&mut Writer::new(&mut buffer));
        String::from_utf8(buffer).unwrap()
    }

    #[test]
    fn any_text_becomes_a_json_string() {
        let text: String = ('\0'..='\u{ff}').chain("\u{2028}🦀".chars()).collect();
        let json = written(|writer| writer.string(&text));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn lines_of_a_doc_comment_become_one_string() {
        let json = written(|writer| writer.lines(&["", " One.", "", "   - \"two\" ", " "]));
        assert_eq!(json, r#""One.\n\n  - \"two\"""#);
        assert_eq!(written(|writer| writer.lines(&[])), r#""""#);
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 1234, usize::MAX] {
            assert_eq!(written(|writer| writer.number(number)), number.to_string());
        }
    }
}
