//! What the view shows and what a key or an answer changes in it. Pure: it asks nobody and draws nothing.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    answers::Look,
    keys::{self, Press},
    model::{Key, Model, Row, Seen},
    run::Options,
    sort::{self, SortKey},
    source::{Fault, Order},
};

/// The most characters of a filter.
const MAX_FILTER: usize = 100;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Model,
    pub(crate) sort: SortKey,
    pub(crate) is_reversed: bool,
    pub(crate) filter: String,
    pub(crate) mode: Mode,
    pub(crate) pane: Option<Pane>,
    /// The number of lines of the help above the screen.
    pub(crate) help_scroll: usize,
    /// Why the last look failed. The values are then old.
    pub(crate) fault: Option<String>,
    /// Whether Main has not answered for longer than it should.
    pub(crate) is_late: bool,
    pub(crate) notice: Option<Notice>,
    pub(crate) interval: Duration,
    pub(crate) has_color: bool,
    /// The first row on the screen.
    pub(crate) offset: usize,
    /// The number of rows on the screen, as it was drawn last.
    pub(crate) page: usize,
    /// The selected row. `None` selects the first row, whichever that is.
    selected: Option<Key>,
    /// The place of the selected row, in case that the row goes.
    cursor: usize,
    under_way: Option<(Order, String)>,
    /// When the last look ended, well or not.
    looked: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Browsing,
    Help,
    /// The filter is being typed.
    Filtering,
    /// Whether to give this order to this extension. It stays this extension, even if the rows change their places.
    Question(Order, String),
}

#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) key: Key,
    /// The number of lines above the screen.
    pub(crate) scroll: usize,
}

/// What is said on the last line, such as the outcome of the last order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_bad: bool,
}

/// What is to be done outside the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    /// Take the terminal over again.
    GoOn,
    Give(Order, String),
    /// Look at once, and ask for the log of this extension, if any.
    Watch(Option<String>),
}

impl State {
    pub(crate) fn new(Options { interval, sort, filter, color }: Options, now: Instant) -> Self {
        Self {
            model: Model::default(),
            sort,
            is_reversed: false,
            filter,
            mode: Mode::Browsing,
            pane: None,
            help_scroll: 0,
            fault: None,
            is_late: false,
            notice: None,
            interval,
            has_color: color,
            offset: 0,
            page: 1,
            selected: None,
            cursor: 0,
            under_way: None,
            looked: now,
        }
    }

    pub(crate) fn shown(&self) -> Vec<&Row> {
        sort::shown(&self.model.rows, &self.filter, self.sort, self.is_reversed)
    }

    /// Returns the place of the selected row among those that are shown.
    pub(crate) fn position(&self, shown: &[&Row]) -> usize {
        let Some(selected) = &self.selected else { return 0 };
        let found = shown.iter().position(|row| row.key == *selected);
        found.unwrap_or(self.cursor.min(shown.len().saturating_sub(1)))
    }

    /// Whether the values are those of a look before the last.
    pub(crate) fn is_old(&self) -> bool {
        self.fault.is_some() || self.is_late
    }

    pub(crate) fn under_way(&self) -> Option<String> {
        self.under_way.as_ref().map(|(order, id)| format!("{order} `{id}` is under way"))
    }

    /// Returns how long until Main counts as late. `None` if it does already, or is known not to answer.
    pub(crate) fn patience(&self, now: Instant) -> Option<Duration> {
        let patience = self.interval * 2 + Duration::from_secs(1);
        (!self.is_old()).then(|| patience.saturating_sub(now.saturating_duration_since(self.looked)))
    }

    pub(crate) fn late(&mut self) {
        self.forget_notice_of_before();
        self.is_late = true;
    }

    /// Forgets the notice when the values become old, since it would hide why.
    fn forget_notice_of_before(&mut self) {
        if !self.is_old() {
            self.notice = None;
        }
    }

    pub(crate) fn answered(&mut self, answer: Result<Look, Fault>, now: Instant) {
        self.looked = now;
        match answer {
            Ok(look) => {
                self.fault = None;
                if self.model.add(look) == Seen::Another {
                    self.say("Main was started again: all counts begin anew".to_owned(), false);
                }
                let position = self.position(&self.shown());
                self.cursor = position;
            }
            Err(Fault(why)) => {
                self.forget_notice_of_before();
                self.fault = Some(why);
            }
        }
        self.is_late = false;
    }

    pub(crate) fn ordered(&mut self, order: Order, id: &str, outcome: Result<String, Fault>) -> Effect {
        self.under_way = None;
        match outcome {
            Ok(state) => self.say(format!("{order} `{id}`: done, it is {state}"), false),
            Err(Fault(why)) => self.say(format!("{order} `{id}`: {why}"), true),
        }
        self.watch()
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        if keys::is_interrupt(key) {
            return Some(Effect::Quit);
        }
        match self.mode.clone() {
            Mode::Browsing => self.press(keys::press(key)?),
            Mode::Help => {
                self.read_help(keys::press(key));
                None
            }
            Mode::Filtering => {
                self.type_filter(key);
                None
            }
            Mode::Question(order, id) => self.decide(key, order, id),
        }
    }

    fn press(&mut self, press: Press) -> Option<Effect> {
        // The notice was read: the key that comes now closes it.
        self.notice = None;
        match press {
            Press::Quit => return Some(Effect::Quit),
            Press::Suspend => return Some(Effect::Suspend),
            Press::Back => return self.back(),
            Press::Open => return self.open(),
            Press::Order(order) => self.ask(order),
            Press::Help => (self.mode, self.help_scroll) = (Mode::Help, 0),
            Press::Filter if self.pane.is_none() => self.mode = Mode::Filtering,
            Press::Filter => {}
            Press::Reverse => self.is_reversed = !self.is_reversed,
            Press::Sort(key) => self.sort_by(key),
            Press::NextSort => self.sort_by(self.sort.next()),
            Press::PreviousSort => self.sort_by(self.sort.previous()),
            Press::Up => self.go(|place, _| place.saturating_sub(1)),
            Press::Down => self.go(|place, _| place.saturating_add(1)),
            Press::PageUp => self.go(|place, page| place.saturating_sub(page)),
            Press::PageDown => self.go(|place, page| place.saturating_add(page)),
            Press::First => self.go(|_, _| 0),
            Press::Last => self.go(|_, _| usize::MAX),
        }
        None
    }

    fn back(&mut self) -> Option<Effect> {
        if self.pane.take().is_some() {
            return Some(self.watch());
        }
        if self.filter.is_empty() {
            return Some(Effect::Quit);
        }
        self.filter.clear();
        None
    }

    fn open(&mut self) -> Option<Effect> {
        let key = self.current()?;
        self.selected = Some(key.clone());
        self.pane = Some(Pane { key, scroll: 0 });
        Some(self.watch())
    }

    /// Returns the effect that looks at Main at once, with the log of the extension in the pane.
    fn watch(&self) -> Effect {
        Effect::Watch(match &self.pane {
            Some(Pane { key: Key::Extension(id), .. }) => Some(id.clone()),
            _ => None,
        })
    }

    /// Returns the row that a key is about: that of the pane, else the selected one.
    fn current(&self) -> Option<Key> {
        if let Some(pane) = &self.pane {
            return Some(pane.key.clone());
        }
        let shown = self.shown();
        shown.get(self.position(&shown)).map(|row| row.key.clone())
    }

    fn read_help(&mut self, press: Option<Press>) {
        // Drawing knows how many lines there are, and takes back what is too much.
        match press {
            Some(Press::Up | Press::PageUp) => self.help_scroll = self.help_scroll.saturating_sub(1),
            Some(Press::Down | Press::PageDown) => self.help_scroll += 1,
            _ => self.mode = Mode::Browsing,
        }
    }

    fn sort_by(&mut self, key: SortKey) {
        (self.sort, self.is_reversed) = (key, false);
    }

    /// Moves in the table, or scrolls the pane. `to` gets the place and the length of a page.
    fn go(&mut self, to: impl Fn(usize, usize) -> usize) {
        let page = self.page.max(1);
        if let Some(pane) = &mut self.pane {
            // Drawing knows how many lines there are, and takes back what is too much.
            pane.scroll = to(pane.scroll, page);
            return;
        }
        let shown = self.shown();
        let place = to(self.position(&shown), page).min(shown.len().saturating_sub(1));
        let key = shown.get(place).map(|row| row.key.clone());
        // On the first line, no row is selected: the selection stays there, whichever row comes up.
        (self.selected, self.cursor) = (key.filter(|_| place > 0), place);
    }

    fn ask(&mut self, order: Order) {
        if let Some(under_way) = self.under_way() {
            return self.say(format!("{under_way}: one order at a time"), true);
        }
        match self.current() {
            Some(Key::Extension(id)) => self.mode = Mode::Question(order, id),
            Some(Key::Peer(name)) => {
                self.say(format!("`{name}` is a program outside Main, which takes no orders"), true);
            }
            None => {}
        }
    }

    fn decide(&mut self, key: KeyEvent, order: Order, id: String) -> Option<Effect> {
        self.mode = Mode::Browsing;
        let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y'))
            && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if !is_yes {
            self.say(format!("{order} `{id}`: not done"), false);
            return None;
        }
        self.under_way = Some((order, id.clone()));
        Some(Effect::Give(order, id))
    }

    fn type_filter(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter => self.mode = Mode::Browsing,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Browsing;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => self.filter.clear(),
            KeyCode::Char(letter)
                if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
                    && self.filter.chars().count() < MAX_FILTER =>
            {
                self.filter.push(letter);
            }
            _ => {}
        }
    }

    fn say(&mut self, text: String, is_bad: bool) {
        self.notice = Some(Notice { text, is_bad });
    }
}

#[cfg(test)]
mod tests;
