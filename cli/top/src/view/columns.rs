//! The columns of the table: which fit, and what each shows of a row.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span, Text},
};

use super::{
    figures::{NOTHING, bytes, count, cut, percent, printable, rate, spark, time},
    style::Styles,
};
use crate::{model::Row, sort::SortKey};

/// The columns, in their order on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    Name,
    State,
    Cpu,
    CpuHistory,
    Limit,
    Memory,
    Messages,
    P50,
    P99,
    Inbox,
    Lost,
    Restarts,
}

/// The least width of the names, with their mark.
const MIN_NAME: u16 = 14;

/// The columns by importance. Those that a narrow terminal keeps come first.
const BY_IMPORTANCE: [Column; 12] = [
    Column::Name,
    Column::Cpu,
    Column::Limit,
    Column::State,
    Column::Messages,
    Column::P99,
    Column::Lost,
    Column::Inbox,
    Column::Restarts,
    Column::P50,
    Column::Memory,
    Column::CpuHistory,
];

/// Returns the columns that fit, in their order, with their widths. From 20 columns on, that of `sort` is among them,
/// if need be with less room for names. Names get what is left, up to `longest_name`.
pub(super) fn fitting(width: u16, sort: SortKey, longest_name: u16) -> Vec<(Column, u16)> {
    let sorted = BY_IMPORTANCE.into_iter().find(|column| column.own_sort() == Some(sort));
    let sorted = sorted.filter(|column| *column != Column::Name && column.width() < width);
    let beside_name = sorted.map_or(0, |column| column.width().saturating_add(1));
    let least_name = MIN_NAME.min(width.saturating_sub(beside_name));
    let mut chosen: Vec<_> = [Column::Name].into_iter().chain(sorted).collect();
    let mut used = least_name.saturating_add(beside_name);
    for column in BY_IMPORTANCE {
        let wider = used.saturating_add(column.width()).saturating_add(1);
        if !chosen.contains(&column) && wider <= width {
            chosen.push(column);
            used = wider;
        }
    }
    let name = least_name.saturating_add(width.saturating_sub(used)).min(longest_name.max(least_name));
    let width_of = |column: Column| if column == Column::Name { name.min(width) } else { column.width() };
    chosen.sort_unstable();
    chosen.into_iter().map(|column| (column, width_of(column))).collect()
}

impl Column {
    /// Returns the column's name, its width, and what sorts by it.
    fn facts(self) -> (&'static str, u16, Option<SortKey>) {
        match self {
            Self::Name => (" NAME", MIN_NAME, Some(SortKey::Name)),
            Self::State => ("STATE", 12, None),
            Self::Cpu => ("CPU%", 6, Some(SortKey::Cpu)),
            Self::CpuHistory => ("CPU OVER TIME", 20, None),
            Self::Limit => ("MEM%", 5, Some(SortKey::Limit)),
            Self::Memory => ("MEMORY / LIMIT", 19, Some(SortKey::Memory)),
            Self::Messages => ("MSG/S", 6, Some(SortKey::Messages)),
            Self::P50 => ("P50", 6, Some(SortKey::P50)),
            Self::P99 => ("P99", 6, Some(SortKey::P99)),
            Self::Inbox => ("INBOX", 6, Some(SortKey::Inbox)),
            Self::Lost => ("LOST", 6, Some(SortKey::Lost)),
            Self::Restarts => ("RESTARTS", 9, Some(SortKey::Restarts)),
        }
    }

    fn width(self) -> u16 {
        self.facts().1
    }

    fn own_sort(self) -> Option<SortKey> {
        self.facts().2
    }

    pub(super) fn header(self, sort: SortKey, is_reversed: bool) -> Text<'static> {
        let (name, ..) = self.facts();
        let mark = match (self.own_sort() == Some(sort), is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        self.aligned(format!("{name}{mark}"), Style::new())
    }

    pub(super) fn cell(self, row: &Row, width: u16, is_selected: bool, styles: Styles) -> Text<'static> {
        let width = usize::from(width);
        let (text, style) = match self {
            Self::Name => {
                let mark = if is_selected { ">" } else { " " };
                (format!("{mark}{}", cut(&printable(row.key.name()), width.saturating_sub(1))), Style::new())
            }
            Self::State => (cut(&printable(&row.state), width), styles.state(&row.state)),
            Self::Cpu => (or_nothing(row.cpu, percent), styles.share(row.cpu)),
            Self::CpuHistory => {
                // All rows have one scale, so that they compare: a full bar is the whole thread.
                let line = spark(&row.history.of(|sample| sample.cpu), width, 1.0);
                // Reversed, a full bar would look like an empty one.
                (line, styles.spark().remove_modifier(Modifier::REVERSED))
            }
            Self::Limit => {
                let share = row.memory_share();
                (or_nothing(share, |share| format!("{:.0}", share * 100.0)), styles.share(share))
            }
            Self::Memory => {
                let both = |(used, limit)| format!("{} / {}", bytes(used), bytes(limit));
                (or_nothing(row.memory, both), Style::new())
            }
            Self::Messages => (or_nothing(row.messages, rate), Style::new()),
            Self::P50 => (or_nothing(row.p50, time), Style::new()),
            Self::P99 => (or_nothing(row.p99, time), Style::new()),
            Self::Inbox => (count(row.inbox), Style::new()),
            // The mark says that some were lost between the last two looks.
            Self::Lost if row.newly_lost > 0 => (format!("{}!", count(row.lost)), styles.bad()),
            Self::Lost => (count(row.lost), Style::new()),
            Self::Restarts => (or_nothing(row.restarts, count), Style::new()),
        };
        self.aligned(text, style)
    }

    /// Aligns the text: words to the left, figures to the right.
    fn aligned(self, text: String, style: Style) -> Text<'static> {
        let line = Line::from(Span::styled(text, style));
        Text::from(match self {
            Self::Name | Self::State => line.left_aligned(),
            _ => line.right_aligned(),
        })
    }
}

fn or_nothing<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or(NOTHING.to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_never_take_more_than_there_is() {
        for width in 0..300 {
            for sort in [SortKey::Cpu, SortKey::Memory, SortKey::Restarts] {
                let columns = fitting(width, sort, 30);
                let gaps = u16::try_from(columns.len() - 1).unwrap();
                let sum = columns.iter().map(|(_, width)| width).sum::<u16>() + gaps;
                assert!(sum <= width, "{sum} of {width}");
            }
        }
    }

    #[test]
    fn what_the_rows_are_sorted_by_is_shown_on_narrow_terminals_too() {
        for width in 20..100 {
            for sort in [SortKey::Cpu, SortKey::Memory, SortKey::Restarts, SortKey::Name, SortKey::P99] {
                let columns = fitting(width, sort, 30);
                assert!(
                    columns.iter().any(|(column, _)| column.own_sort() == Some(sort)),
                    "{sort:?} in {width}"
                );
            }
        }
        // The name gets narrower for it.
        assert_eq!(fitting(20, SortKey::Cpu, 30), [(Column::Name, 13), (Column::Cpu, 6)]);
    }
}
