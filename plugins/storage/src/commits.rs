//! Changes requested at the same time share one call of the store, which writes them to disk together.
//!
//! The disk makes up most of a change's time. While one group is written, requests pile up in the inbox. The
//! first task to run after that lets all of them in and writes them together.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    mem,
    rc::Rc,
    task::Poll,
};

use futures_util::lock::Mutex;

use crate::store::{Change, CommitError, Store};

/// How often a task yields before a group counts as complete, so that the inbox is read meanwhile. The executor looks
/// at its tasks before its first look at the inbox, and up to twice for each later one.
const TURNS: u32 = 4;

/// A group of this many changes waits for no more. It can be slightly larger, since the inbox gives out many at once.
const MAX_GROUP: usize = 512;

/// The most bytes of changes in one step, because a call of the store can carry only so many. A larger change is a step
/// of its own.
const MAX_GROUP_BYTES: usize = 256 * 1024;

type Outcome = Result<bool, CommitError>;

pub(crate) struct Commits {
    store: Store,
    waiting: RefCell<Group>,
    turn: Mutex<()>,
}

#[derive(Default)]
struct Group {
    changes: Vec<Change>,
    outcomes: Vec<Rc<Cell<Option<Outcome>>>>,
    bytes: usize,
}

impl Commits {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, waiting: RefCell::default(), turn: Mutex::new(()) }
    }

    /// What is stored: only changes that are on disk.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Makes a change. When it is on disk, returns whether its key had a value before.
    pub(crate) async fn commit(&self, change: Change) -> Outcome {
        let outcome = self.waiting.borrow_mut().push(change);
        let _turn = self.turn.lock().await;
        loop {
            // Another task may have made this change together with its own.
            if let Some(outcome) = outcome.take() {
                return outcome;
            }
            self.let_others_in().await;
            self.commit_all();
        }
    }

    /// Waits until no more changes come, or there are enough.
    async fn let_others_in(&self) {
        let mut known = 0;
        loop {
            let waiting = self.waiting.borrow().changes.len();
            if waiting == known || self.waiting.borrow().is_large() {
                return;
            }
            known = waiting;
            for _ in 0..TURNS {
                yield_now().await;
            }
        }
    }

    fn commit_all(&self) {
        let Group { changes, outcomes, .. } = mem::take(&mut *self.waiting.borrow_mut());
        let mut outcomes = outcomes.into_iter();
        for changes in in_steps(changes) {
            for made in self.store.commit(changes) {
                if let Some(outcome) = outcomes.next() {
                    outcome.set(Some(made));
                }
            }
        }
    }
}

impl Group {
    fn push(&mut self, change: Change) -> Rc<Cell<Option<Outcome>>> {
        let outcome = Rc::default();
        self.bytes = self.bytes.saturating_add(change.bytes());
        self.changes.push(change);
        self.outcomes.push(Rc::clone(&outcome));
        outcome
    }

    fn is_large(&self) -> bool {
        self.changes.len() >= MAX_GROUP || self.bytes >= MAX_GROUP_BYTES
    }
}

/// Splits changes into steps. A step ends before the change that would make it too large.
fn in_steps(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let (mut steps, mut step, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
    for change in changes {
        let more = change.bytes();
        if !step.is_empty() && bytes.saturating_add(more) > MAX_GROUP_BYTES {
            steps.push(mem::take(&mut step));
            bytes = 0;
        }
        bytes = bytes.saturating_add(more);
        step.push(change);
    }
    if !step.is_empty() {
        steps.push(step);
    }
    steps
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use futures_util::future::{FutureExt, join_all};
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::keyvalue::memory::writes;

    #[test]
    fn changes_that_are_asked_for_at_the_same_time_share_a_write_and_keep_their_order() {
        let commits = Commits::new(Store::open("shared").unwrap());
        let change = |number: u32| Change::Set((number % 10).to_string(), to_raw_value(&number).unwrap());
        let before = writes();
        let mut all = pin!(join_all((0..500).map(|number| commits.commit(change(number)))));
        let outcomes = loop {
            if let Poll::Ready(outcomes) = all.poll_unpin(&mut Context::from_waker(Waker::noop())) {
                break outcomes;
            }
        };
        assert_eq!(writes() - before, 1);
        assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Ok(false))).count(), 10);
        for last in 490..500 {
            let stored = commits.store().get(&(last % 10).to_string()).unwrap();
            assert_eq!(stored.unwrap().get(), last.to_string());
        }
    }

    #[test]
    fn a_step_is_closed_before_a_change_that_would_make_it_too_large() {
        let of = |bytes: usize| Change::Set("k".into(), to_raw_value(&"v".repeat(bytes)).unwrap());
        let changes = [250_000, 1_040_000, 10, 20, 200_000, 100_000].map(of);
        let steps = in_steps(changes.into_iter().collect());
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 3, 1]);
    }

    #[test]
    fn whoever_gives_up_leaves_its_turn_to_the_others() {
        let commits = Commits::new(Store::open("given-up").unwrap());
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = Box::pin(commits.commit(Change::Delete("a".into())));
        let mut second = pin!(commits.commit(Change::Delete("b".into())));
        assert!(first.poll_unpin(&mut cx).is_pending());
        assert!(second.poll_unpin(&mut cx).is_pending());
        drop(first);
        while second.poll_unpin(&mut cx).is_pending() {}
        assert!(commits.waiting.borrow().changes.is_empty());
    }
}
