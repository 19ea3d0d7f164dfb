//! What has come for one reader and waits for it. It has no bound of its own: the credit that Main has bounds it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// What has come for one reader and waits for it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    has_ended: bool,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        let state = State { items: VecDeque::new(), has_ended: false };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Puts an item in, or gives it back if the mailbox has ended.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.has_ended {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// The next item; `None` once the mailbox has ended and is empty. Loses nothing if it is dropped.
    pub(crate) async fn next(&self) -> Option<T> {
        let next = || {
            let mut state = self.lock();
            let item = state.items.pop_front();
            if item.is_some() || state.has_ended { Some(item) } else { None }
        };
        until(&self.changed, next).await
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Removes the items for which `is_kept` is false.
    pub(crate) fn retain(&self, is_kept: impl FnMut(&T) -> bool) {
        self.lock().items.retain(is_kept);
    }

    /// Ends the mailbox. What is there can still be read.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_waiters();
    }

    /// Ends the mailbox, and returns what was there.
    pub(crate) fn close(&self) -> VecDeque<T> {
        let items = std::mem::take(&mut self.lock().items);
        self.end();
        items
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until `look` finds something. It looks again whenever `changed` is notified.
pub(super) async fn until<T>(changed: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        // Made before the look, so that it sees what comes after the look.
        let changed = changed.notified();
        if let Some(found) = look() {
            return found;
        }
        changed.await;
    }
}
