//! Lines that are longer or more than the screen has: wrapped, and scrolled.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// Wraps the lines and draws those from `scroll` on. Takes back what `scroll` has too much.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>], scroll: &mut usize) {
    let wrapped: Vec<_> = lines.iter().flat_map(|line| wrap(line, usize::from(area.width))).collect();
    *scroll = (*scroll).min(wrapped.len().saturating_sub(usize::from(area.height)));
    for (line, row) in wrapped.into_iter().skip(*scroll).zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

/// Breaks a line where it is full, in the middle of words, too: hostile text may have no spaces.
fn wrap(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    let mut done = Vec::new();
    let (mut spans, mut used) = (Vec::new(), 0);
    for span in &line.spans {
        let mut part = String::new();
        for character in span.content.chars() {
            let columns = width_of(character);
            if used + columns > width && used > 0 {
                spans.push(Span::styled(std::mem::take(&mut part), span.style));
                done.push(Line::from(std::mem::take(&mut spans)));
                used = 0;
            }
            part.push(character);
            used += columns;
        }
        spans.push(Span::styled(part, span.style));
    }
    done.push(Line::from(spans));
    done.iter_mut().for_each(|part| part.style = Style::patch(part.style, line.style));
    done
}

fn width_of(character: char) -> usize {
    Span::raw(character.encode_utf8(&mut [0; 4]) as &str).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, width: usize) -> Vec<String> {
        wrap(&Line::raw(text.to_owned()), width).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_goes_on_in_the_next_where_it_is_full() {
        assert_eq!(texts("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(texts("漢字漢", 5), ["漢字", "漢"]);
        assert_eq!(texts("", 3), [""]);
    }

    #[test]
    fn a_screen_too_narrow_for_one_character_still_ends() {
        assert_eq!(texts("漢字", 1), ["漢", "字"]);
        assert_eq!(texts("ab", 0), ["a", "b"]);
    }
}
