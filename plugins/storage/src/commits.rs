//! Many changes that are asked for at the same time share one write to disk.
//!
//! Waiting for the disk is what a change costs. While one group is written, requests pile up in the
//! inbox; whoever is first to have its turn after that lets all of them in, and writes them together.

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

/// How often the inbox gets its turn before nobody else seems to come. The executor looks at its tasks
/// up to twice for each look at the inbox, and the first time is before any.
const TURNS: u32 = 4;

/// As many changes as are written at once, or somewhat more.
const MAX_GROUP: usize = 512;

/// As many bytes of changes as are written at once, or somewhat more.
const MAX_GROUP_BYTES: usize = 256 * 1024;

type Outcome = Result<bool, CommitError>;

/// The store, and the changes that wait to be made.
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

    /// Looks at what is stored: changes that are on disk, and no others.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        look(self.store.borrow().entries())
    }

    /// Makes a change; returns when it is on disk, and says whether its key had a value before.
    pub(crate) async fn commit(&self, change: Change) -> Outcome {
        let outcome = self.waiting.borrow_mut().push(change);
        let _turn = self.turn.lock().await;
        loop {
            // Somebody else may have made it, together with their own.
            if let Some(outcome) = outcome.take() {
                return outcome;
            }
            self.let_others_in().await;
            self.commit_all();
        }
    }

    /// Waits until no more changes come, or enough have.
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
