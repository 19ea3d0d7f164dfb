//! A line of work that waits for a thread, with a bound on its number and size.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::work::Owner;

/// The most pieces of work that may wait, besides those of [`Line::push_due`].
const MAX_WAITING: usize = 4096;

/// Bytes of waiting work at which the line is full. The last piece may exceed them.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Each user may have a fourth of both bounds, so that a user that floods a store does not make it busy for all.
const PART: usize = 4;

/// Work for one thread. The users take turns, and the work of each user is done in the order in which it came.
#[derive(Debug)]
pub(crate) struct Line<W>(Mutex<Waiting<W>>);

#[derive(Debug)]
struct Waiting<W> {
    by_user: HashMap<Owner, OfUser<W>>,
    /// The users that have work. The turn of the first one is next.
    turns: VecDeque<Owner>,
    /// Work that goes with the next work that the thread takes, however much else waits.
    due: Vec<W>,
    /// Work that is done once nothing else waits.
    last: Vec<W>,
    number: usize,
    bytes: usize,
    /// Whether a thread does the work, or is about to.
    has_thread: bool,
}

#[derive(Debug)]
struct OfUser<W> {
    work: VecDeque<(usize, W)>,
    bytes: usize,
}

/// What became of work that was added to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It waits, and a thread will take it.
    Waits,
    /// It waits, and the caller must start the thread.
    First,
    /// The line has no room for it.
    Full,
}

impl<W> Line<W> {
    pub(crate) fn push(&self, user: &Owner, bytes: usize, work: W) -> Pushed {
        let mut waiting = self.0.lock();
        if waiting.number >= MAX_WAITING || waiting.bytes >= MAX_WAITING_BYTES {
            return Pushed::Full;
        }
        match waiting.by_user.get_mut(user) {
            Some(its) if its.work.len() >= MAX_WAITING / PART || its.bytes >= MAX_WAITING_BYTES / PART => {
                return Pushed::Full;
            }
            Some(its) => {
                its.bytes = its.bytes.saturating_add(bytes);
                its.work.push_back((bytes, work));
            }
            None => {
                waiting.by_user.insert(user.clone(), OfUser { work: [(bytes, work)].into(), bytes });
                waiting.turns.push_back(user.clone());
            }
        }
        waiting.number = waiting.number.saturating_add(1);
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.pushed()
    }

    /// Adds work without a bound, so callers must add little. The thread takes it with its next work, or if `is_last`
    /// once nothing else waits.
    pub(crate) fn push_due(&self, is_last: bool, work: W) -> Pushed {
        let mut waiting = self.0.lock();
        if is_last {
            waiting.last.push(work)
        } else {
            waiting.due.push(work)
        }
        waiting.pushed()
    }

    /// Takes work for the thread: up to `max` pieces and about `max_bytes`, at least one, and all that is due. Empty if
    /// nothing waits; the thread must then end.
    pub(crate) fn take(&self, max: usize, max_bytes: usize) -> Vec<W> {
        let mut waiting = self.0.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0_usize);
        while taken.len() < max && (taken.is_empty() || bytes < max_bytes) {
            let Some((size, work)) = waiting.next() else { break };
            bytes = bytes.saturating_add(size);
            taken.push(work);
        }
        taken.append(&mut waiting.due);
        if waiting.number == 0 {
            taken.append(&mut waiting.last);
        }
        waiting.has_thread = !taken.is_empty();
        taken
    }

    /// Empties the line after its thread has failed. Returns the work that waited.
    pub(crate) fn abandon(&self) -> Vec<W> {
        let mut waiting = self.0.lock();
        let left = std::mem::take(&mut *waiting);
        let of_users = left.by_user.into_values().flat_map(|its| its.work).map(|(_, work)| work);
        of_users.chain(left.due).chain(left.last).collect()
    }
}

impl<W> Waiting<W> {
    /// Notes that a thread does the work from now on. The answer says whether the caller must start that thread.
    fn pushed(&mut self) -> Pushed {
        if std::mem::replace(&mut self.has_thread, true) { Pushed::Waits } else { Pushed::First }
    }

    /// Takes one piece of work of the user whose turn it is, with its bytes.
    fn next(&mut self) -> Option<(usize, W)> {
        let user = self.turns.pop_front()?;
        let its = self.by_user.get_mut(&user)?;
        let (size, work) = its.work.pop_front()?;
        its.bytes = its.bytes.saturating_sub(size);
        if its.work.is_empty() {
            self.by_user.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        self.number = self.number.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size);
        Some((size, work))
    }
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W> Default for Waiting<W> {
    fn default() -> Self {
        Self {
            by_user: HashMap::new(),
            turns: VecDeque::new(),
            due: Vec::new(),
            last: Vec::new(),
            number: 0,
            bytes: 0,
            has_thread: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_takes_all_in_order_and_room_is_bounded() {
        let (line, a) = (Line::default(), Owner::from("a"));
        assert_eq!(line.push(&a, 1, 0), Pushed::First);
        for number in 1..MAX_WAITING / PART {
            assert_eq!(line.push(&a, 1, number), Pushed::Waits);
        }
        assert_eq!(line.push(&a, 1, 0), Pushed::Full);
        assert_eq!(line.take(2, 100), [0, 1]);
        assert_eq!(line.take(10, 3), [2, 3, 4]);
        assert_eq!(line.push(&a, 1, 7), Pushed::Waits);
        assert_eq!(line.take(MAX_WAITING, usize::MAX).len(), MAX_WAITING / PART - 4);
        assert!(line.take(1, 1).is_empty());
        assert_eq!(line.push(&a, MAX_WAITING_BYTES / PART, 8), Pushed::First);
        assert_eq!(line.push(&a, 0, 9), Pushed::Full);
        assert_eq!(line.push_due(true, 9), Pushed::Waits);
        assert_eq!(line.abandon(), [8, 9]);
        assert_eq!(line.push(&a, 0, 9), Pushed::First);
    }

    #[test]
    fn users_have_turns_and_none_fills_the_line_for_the_others() {
        let (line, greedy, modest) = (Line::default(), Owner::from("greedy"), Owner::from("modest"));
        let mut pushed = 0;
        while line.push(&greedy, 1 << 20, 0) != Pushed::Full {
            pushed += 1;
        }
        assert_eq!(pushed, 16);
        assert_eq!(line.push(&modest, 1 << 20, 1), Pushed::Waits);
        assert_eq!(line.push_due(true, 2), Pushed::Waits);
        assert_eq!(line.push_due(false, 3), Pushed::Waits);
        assert_eq!(line.take(3, usize::MAX), [0, 1, 0, 3]);
        let rest = line.take(usize::MAX, usize::MAX);
        assert_eq!((rest.len(), rest.last()), (15, Some(&2)));
    }
}
