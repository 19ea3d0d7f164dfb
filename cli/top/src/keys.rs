//! What each key means where nothing is being typed or asked, and the help that says so.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{sort::SortKey, source::Order};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    Quit,
    /// Closes what is open, clears the filter, or quits.
    Back,
    Suspend,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Filter,
    Help,
    Sort(SortKey),
    NextSort,
    PreviousSort,
    Reverse,
    Order(Order),
}

/// The lines of the help: keys, and what they do.
pub(crate) const HELP: [(&str, &str); 15] = [
    ("up down j k", "move, or scroll; also PgUp PgDn Home End"),
    ("Enter", "open the pane of one: sparklines, failures, log"),
    ("Esc", "close the pane, clear the filter, or quit"),
    ("/", "filter by name or state: Enter keeps it, Esc clears it"),
    ("< >", "sort by the column before or after"),
    ("c m u", "sort by CPU, memory, used part of the memory limit"),
    ("t h p", "sort by messages, p50, p99"),
    ("i o e n", "sort by inbox, losses, restarts, name"),
    ("r", "reverse the order"),
    ("R", "restart the extension, after a question"),
    ("S", "stop it, after a question"),
    ("L", "reload it, after a question"),
    ("Ctrl-Z", "back to the shell; `fg` returns"),
    ("?", "this help"),
    ("q Ctrl-C", "quit"),
];

pub(crate) fn is_interrupt(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}

/// Returns what the key means, if it means anything.
pub(crate) fn press(key: KeyEvent) -> Option<Press> {
    if is_interrupt(key) {
        return Some(Press::Quit);
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('z')).then_some(Press::Suspend);
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match key.code {
        KeyCode::Esc => Press::Back,
        KeyCode::Up | KeyCode::Char('k') => Press::Up,
        KeyCode::Down | KeyCode::Char('j') => Press::Down,
        KeyCode::PageUp => Press::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Press::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Press::First,
        KeyCode::End | KeyCode::Char('G') => Press::Last,
        KeyCode::Enter => Press::Open,
        KeyCode::Char('q') => Press::Quit,
        KeyCode::Char('/') => Press::Filter,
        KeyCode::Char('?') => Press::Help,
        KeyCode::Char('<') => Press::PreviousSort,
        KeyCode::Char('>') => Press::NextSort,
        KeyCode::Char('r') => Press::Reverse,
        KeyCode::Char('R') => Press::Order(Order::Restart),
        KeyCode::Char('S') => Press::Order(Order::Stop),
        KeyCode::Char('L') => Press::Order(Order::Reload),
        KeyCode::Char(letter) => return SortKey::of_letter(letter).map(Press::Sort),
        _ => return None,
    })
}
