//! Draws the state. Every place that shows text of others escapes it first, with [`figures::printable`].

mod columns;
mod figures;
mod pane;
mod style;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Position, Rect},
    style::Style,
    text::{Line, Span},
    widgets::{Row as Cells, Table},
};

use self::{
    figures::{bytes, percent, printable},
    style::Styles,
};
use crate::{
    keys::HELP,
    model::Key,
    state::{Mode, Notice, State},
};

/// The least height with a line on Main as a whole.
const HEIGHT_WITH_TITLE: u16 = 5;

/// The least height with a header. Below it, there are only rows.
const HEIGHT_WITH_HEADER: u16 = 2;

pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let area = frame.area();
    let title_height = u16::from(area.height >= HEIGHT_WITH_TITLE);
    let rows = [Constraint::Length(title_height), Constraint::Fill(1), Constraint::Length(1)];
    let [title_area, body, bottom_area] = Layout::vertical(rows).areas(area);
    let styles = Styles { has_color: state.has_color };
    frame.render_widget(title(state, styles), title_area);
    if state.mode == Mode::Help {
        let lines = HELP.map(|(keys, what)| Line::from(format!("{keys:<12} {what}")));
        draw_lines(frame, body, &lines, &mut state.help_scroll);
    } else if state.pane.is_some() {
        pane::draw(frame, body, state, styles);
    } else {
        draw_table(frame, body, state, styles);
    }
    bottom(frame, state, styles, bottom_area);
}

/// Makes the line on Main as a whole.
fn title(state: &State, styles: Styles) -> Line<'static> {
    let rows = &state.model.rows;
    let extensions = rows.iter().filter(|row| matches!(row.key, Key::Extension(_))).count();
    let peers = rows.len() - extensions;
    let cpu: f64 = rows.iter().filter_map(|row| row.cpu).sum();
    let memory =
        rows.iter().filter_map(|row| row.memory).fold(0_u64, |sum, (used, _)| sum.saturating_add(used));
    let mut spans = vec![Span::styled("weir top", styles.strong())];
    if state.is_old() {
        spans.push(Span::raw("  "));
        spans.push(Span::styled(" OLD VALUES ", styles.bad().patch(styles.selected())));
    }
    let direction = if state.is_reversed { ", reversed" } else { "" };
    let mut text = format!("  by {}{direction}  {}", state.sort.name(), counted(extensions, "extension"));
    if peers > 0 {
        text += &format!(", {}", counted(peers, "peer"));
    }
    text += &format!("  CPU {}%  memory {}", percent(cpu), bytes(memory));
    if !state.filter.is_empty() {
        text += &format!("  filter `{}`", printable(&state.filter));
    }
    spans.push(Span::raw(text));
    Line::from(spans)
}

/// Draws the table: a line for each extension and peer.
fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &mut State, styles: Styles) {
    let has_header = area.height >= HEIGHT_WITH_HEADER;
    let page = usize::from(area.height.saturating_sub(u16::from(has_header)));
    let shown = state.shown();
    let position = state.position(&shown);
    // The rows begin at most at the last page, and include the selected row. After a change of height they begin at the
    // first row again.
    let before = if page == state.page { state.offset } else { 0 };
    let offset = before.min(shown.len().saturating_sub(page));
    let offset = offset.clamp(position.saturating_sub(page.saturating_sub(1)), position);

    // A character takes up to two columns, and one column more is for the mark of the selected row.
    let longest =
        shown.iter().map(|row| printable(row.key.name()).chars().count() * 2).max().unwrap_or(0) + 1;
    let longest = u16::try_from(longest).unwrap_or(u16::MAX);
    let columns = columns::fitting(area.width, state.sort, longest);
    let header = columns.iter().map(|(column, _)| column.header(state.sort, state.is_reversed));
    let rows = shown.iter().enumerate().skip(offset).take(page).map(|(place, row)| {
        let is_selected = place == position;
        let cells = columns.iter().map(|(column, width)| column.cell(row, *width, is_selected, styles));
        let style = match (is_selected, state.is_old()) {
            (true, _) => styles.selected(),
            (false, true) => styles.quiet(),
            (false, false) => Style::new(),
        };
        Cells::new(cells).style(style)
    });
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let mut table = Table::new(rows.collect::<Vec<_>>(), widths).column_spacing(1);
    if has_header {
        table = table.header(Cells::new(header).style(styles.header()));
    }
    frame.render_widget(table, area);
    (state.offset, state.page) = (offset, page);
}

/// Wraps the lines and draws those from `scroll` on. Takes back what `scroll` has too much.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>], scroll: &mut usize) {
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

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Draws the last line: the question, the filter being typed, how the help closes, the last notice, or else the line of
/// [`standing`].
fn bottom(frame: &mut Frame<'_>, state: &State, styles: Styles, area: Rect) {
    let line = match (&state.mode, &state.notice) {
        (Mode::Question(order, id), _) => {
            let (before, after) = (format!("{} `", order.question()), "`? y/n ");
            let room = usize::from(area.width).saturating_sub(before.len() + after.len());
            let text = before + &figures::cut(&printable(id), room) + after;
            Line::styled(text, styles.strong().patch(styles.selected()))
        }
        (Mode::Filtering, _) => {
            let line = Line::raw(format!("/{}", printable(&state.filter)));
            let column = u16::try_from(line.width()).unwrap_or(u16::MAX);
            let column = area.x.saturating_add(column).min(area.right().saturating_sub(1));
            frame.set_cursor_position(Position::new(column, area.y));
            line
        }
        (Mode::Help, _) => Line::raw("up and down scroll, any other key closes the help"),
        (Mode::Browsing, Some(Notice { text, is_bad })) => {
            Line::styled(printable(text), if *is_bad { styles.bad() } else { styles.strong() })
        }
        (Mode::Browsing, None) => standing(state, styles),
    };
    frame.render_widget(line, area);
}

/// Makes the last line without a question or notice: why the values are old, the order under way, or the keys.
fn standing(state: &State, styles: Styles) -> Line<'static> {
    let late =
        || state.is_late.then(|| "Main does not answer yet: it has much to do, or is stopped".to_owned());
    if let Some(why) = state.fault.clone().or_else(late) {
        return Line::styled(printable(&why), styles.bad());
    }
    if let Some(under_way) = state.under_way() {
        return Line::styled(printable(&under_way), styles.strong());
    }
    if state.model.rows.is_empty() {
        return Line::raw("waiting for the first answer of Main; q quits");
    }
    let keys = match &state.pane {
        Some(_) => "q quit  Esc close  R restart  S stop  L reload  ? help",
        None => "q quit  ? help  Enter open  / filter  < > sort  R restart  S stop  L reload",
    };
    Line::styled(keys, styles.quiet())
}

#[cfg(test)]
mod tests;
