//! Changes requested at the same time share one write to disk.
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

use crate::{
    change::Change,
    entries::Entries,
    store::{CommitError, Store},
};

/// Turns of the inbox before a group is taken as complete. The executor looks at its tasks up to twice for
/// each look at the inbox, and the first time before any.
const TURNS: u32 = 4;

/// Changes written in one step, or slightly more.
const MAX_GROUP: usize = 512;

/// Bytes of changes written in one step, or slightly more.
const MAX_GROUP_BYTES: usize = 256 * 1024;

type Outcome = Result<bool, CommitError>;

pub(crate) struct Commits {
    store: RefCell<Store>,
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
        Self { store: RefCell::new(store), waiting: RefCell::default(), turn: Mutex::new(()) }
    }

    /// Reads the stored entries: only changes that are on disk.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        look(self.store.borrow().entries())
    }

    /// Makes a change. When it is on disk, returns whether its key had a value before.
    pub(crate) async fn commit(&self, change: Change) -> Outcome {
        let outcome = self.waiting.borrow_mut().push(change);
        let _turn = self.turn.lock().await;
        loop {
            // Another task may have made it, with its own.
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
        let made = self.store.borrow_mut().commit(changes);
        for (outcome, made) in outcomes.into_iter().zip(made) {
            outcome.set(Some(made));
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

    #[test]
    fn changes_that_are_asked_for_at_the_same_time_share_a_write_and_keep_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let commits = Commits::new(Store::open(directory.path(), 1_000_000).unwrap().0);
        let change =
            |number: u32| Change::set((number % 10).to_string(), to_raw_value(&number).unwrap()).unwrap();
        let mut all = pin!(join_all((0..500).map(|number| commits.commit(change(number)))));
        let mut lengths = vec![0];
        let outcomes = loop {
            if let Poll::Ready(outcomes) = all.poll_unpin(&mut Context::from_waker(Waker::noop())) {
                break outcomes;
            }
            lengths.push(std::fs::metadata(&log).unwrap().len());
        };
        lengths.push(std::fs::metadata(&log).unwrap().len());
        lengths.dedup();
        assert_eq!(lengths.len(), 2, "all or nothing was written: {lengths:?}");
        assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Ok(false))).count(), 10);
        for last in 490..500 {
            let stored = commits.read(|entries| entries.get(&(last % 10).to_string()));
            assert_eq!(stored.unwrap().get(), last.to_string());
        }
    }

    #[test]
    fn whoever_gives_up_leaves_its_turn_to_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let commits = Commits::new(Store::open(directory.path(), 1000).unwrap().0);
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
