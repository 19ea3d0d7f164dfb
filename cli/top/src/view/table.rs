//! The table of all: a line for each extension and peer.

use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    style::Style,
    widgets::{Row as Cells, Table},
};

use super::{columns, figures::printable, style::Styles};
use crate::state::State;

/// Below this height there are only rows.
const HEIGHT_WITH_HEADER: u16 = 2;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut State, styles: Styles) {
    let has_header = area.height >= HEIGHT_WITH_HEADER;
    let page = usize::from(area.height.saturating_sub(u16::from(has_header)));
    let shown = state.shown();
    let position = state.position(&shown);
    // Not further than the last page, and with the selected row. Another height begins at the first row again.
    let before = if page == state.page { state.offset } else { 0 };
    let offset = before.min(shown.len().saturating_sub(page));
    let offset = offset.clamp(position.saturating_sub(page.saturating_sub(1)), position);

    // One column for the mark of the selected row.
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
