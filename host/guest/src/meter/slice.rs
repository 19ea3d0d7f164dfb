//! The arithmetic of a slice: how much of it a guest has burnt, and when it yields.
//!
//! Knows nothing of the Store: it is told the fuel left there, and returns the fuel to set.

use std::time::Duration;

/// A slice also ends after this time, because calls into the host differ in cost.
pub(in super::super) const TIME: Duration = Duration::from_micros(250);

/// How often in a row a guest may be charged when it should have yielded. Only code made without loops and functions
/// gets there, because a guest yields at the next loop or function.
const MAX_OVERDUE: u32 = 400;

/// The value of [`MAX_OVERDUE`] for a slice that has taken longer than [`LONG`].
const MAX_OVERDUE_FOR_LONG: u32 = 64;
const LONG: Duration = Duration::from_millis(10);

/// What is set in the Store: the guest's fuel, and how much of it the guest may burn before it yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fuel {
    pub(super) fuel: u64,
    /// The fuel after which the guest yields. Never zero.
    pub(super) interval: u64,
}

/// The part of a guest's turn after which it yields.
#[derive(Debug)]
pub(super) struct Slice {
    /// The fuel of a whole slice.
    length: u64,
    /// What was last set in the Store.
    set: Fuel,
    /// The fuel burnt in this slice before `set` was set.
    burnt: u64,
    /// How often in a row the guest was charged past the end of its slice.
    overdue: u32,
    /// Whether this slice was cut.
    is_cut: bool,
}

/// A guest that keeps calling the host and never reaches a point where it would yield.
#[derive(Debug, thiserror::Error)]
#[error("calls the host again and again with no loop or function between, so nothing else can run")]
pub(super) struct NeverYields;

impl Slice {
    pub(super) fn new(length: u64, fuel: u64) -> Self {
        let set = Fuel { fuel, interval: length };
        Self { length, set, burnt: 0, overdue: 0, is_cut: false }
    }

    /// Returns this fuel, with a whole slice ahead.
    pub(super) fn whole(&self, fuel: u64) -> Fuel {
        Fuel { fuel, interval: self.length }
    }

    /// Begins a new slice, for a guest that let others run.
    pub(super) fn begin(&mut self, left: u64) -> Fuel {
        *self = Self::new(self.length, left);
        self.set
    }

    /// Continues the slice, `elapsed` after it began, with `new` fuel in place of `left`, and counts the host's `work`.
    /// Ends the slice if it is used up or takes too long. Fails for a guest that was overdue too often.
    pub(super) fn go_on(
        &mut self,
        left: u64,
        new: u64,
        work: u64,
        elapsed: Duration,
    ) -> Result<Fuel, NeverYields> {
        self.burnt = self.burnt.saturating_add(self.set.fuel.saturating_sub(left)).saturating_add(work);
        let was_over = self.set.interval == 1;
        let is_over = self.burnt >= self.length || elapsed >= TIME;
        self.overdue = if is_over && was_over { self.overdue + 1 } else { 0 };
        if self.overdue > MAX_OVERDUE || (self.overdue > MAX_OVERDUE_FOR_LONG && elapsed > LONG) {
            return Err(NeverYields);
        }
        // With an interval of one unit, the guest yields at the next loop or function.
        let interval = if is_over { 1 } else { self.length - self.burnt };
        self.set = Fuel { fuel: new, interval };
        Ok(self.set)
    }

    /// Makes the guest yield at the next loop or function, at the cost of the rest of its slice. A second call in the
    /// same slice does nothing and returns none.
    ///
    /// The guest's code holds that rest. If it reloads the fuel from the Store, it finds one unit of the rest. If it
    /// overwrites the Store with its own count, its total is unchanged. Only in its very last slice can a guest gain
    /// fuel, and each further cut gives half as much.
    pub(super) fn cut(&mut self, left: u64) -> Option<Fuel> {
        if std::mem::replace(&mut self.is_cut, true) {
            return None;
        }
        let kept_back = self.set.fuel.saturating_sub(self.set.interval).min(left);
        let fuel = if kept_back == 0 { (left / 2).max(1) } else { kept_back + 1 };
        self.set = Fuel { fuel, interval: 1 };
        Some(self.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn what_the_host_did_and_what_was_burnt_shorten_the_same_slice() {
        let mut slice = Slice::new(100, 1000);
        assert_eq!(slice.go_on(970, 960, 10, NOW).unwrap(), Fuel { fuel: 960, interval: 60 });
        assert_eq!(slice.go_on(950, 2000, 0, NOW).unwrap(), Fuel { fuel: 2000, interval: 50 });
        assert_eq!(slice.go_on(1960, 1950, 10, NOW).unwrap(), Fuel { fuel: 1950, interval: 1 });
    }

    #[test]
    fn a_slice_ends_late_however_little_was_burnt() {
        let mut slice = Slice::new(100, 1000);
        assert_eq!(slice.go_on(999, 999, 0, TIME).unwrap().interval, 1);
    }

    #[test]
    fn whoever_let_others_run_has_a_whole_slice_whatever_it_burnt_before() {
        let mut slice = Slice::new(100, 1000);
        for burnt in [3, 60, 99, 250] {
            slice.go_on(1000 - burnt, 1000, 7, NOW).unwrap();
            assert_eq!(slice.begin(1000), Fuel { fuel: 1000, interval: 100 });
            assert_eq!(slice.go_on(990, 990, 0, NOW).unwrap().interval, 90);
            slice.begin(1000);
        }
    }

    #[test]
    fn a_guest_that_never_comes_to_where_it_would_yield_is_found_out() {
        let calls = |elapsed| {
            let mut slice = Slice::new(100, 1000);
            (0_u32..).find(|_| slice.go_on(0, 1000, 0, elapsed).is_err()).unwrap()
        };
        assert_eq!(calls(TIME), MAX_OVERDUE + 1);
        assert_eq!(calls(LONG * 2), MAX_OVERDUE_FOR_LONG + 1);
    }

    /// The guest's fuel after a cut, if it reloads the Store, and if it goes on with its own count.
    fn after_cut(fuel: u64, slice: u64, own: u64) -> (u64, u64) {
        let mut state = Slice::new(slice, fuel);
        let stored = fuel;
        let Some(cut) = state.cut(stored) else { panic!("it was cut before") };
        assert_eq!(state.cut(stored), None, "once a slice");
        (cut.fuel, cut.fuel - cut.interval + own)
    }

    #[test]
    fn a_cut_gives_nothing_back_whether_or_not_the_guest_reads_it() {
        for own in [1, 50, 100] {
            let (read, unread) = after_cut(1000, 100, own);
            assert_eq!(read, 901, "what is kept back, and one unit");
            assert_eq!(unread, 900 + own, "what it had");
        }
    }

    #[test]
    fn in_the_last_slice_a_cut_gives_ever_less() {
        let (mut fuel, mut cuts) = (100, 0);
        while fuel > 1 {
            let (_, unread) = after_cut(fuel, 1000, 1);
            assert!(unread <= fuel / 2 + 1);
            fuel = unread;
            cuts += 1;
        }
        assert!(cuts < 10, "{cuts}");
    }
}
