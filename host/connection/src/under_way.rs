//! What the program began and waits for: calls, events, jobs.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};

type Work<K, T> = Pin<Box<dyn Future<Output = (Option<K>, T)> + Send>>;

/// Everything under way of one session, each under the program's own key. `limits.in-flight` bounds it.
pub struct UnderWay<K, T> {
    work: FuturesUnordered<Abortable<Work<K, T>>>,
    by_key: HashMap<K, AbortHandle>,
}

impl<K, T> Default for UnderWay<K, T> {
    fn default() -> Self {
        Self { work: FuturesUnordered::new(), by_key: HashMap::new() }
    }
}

impl<K, T> fmt::Debug for UnderWay<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").field("count", &self.work.len()).finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, T: 'static> UnderWay<K, T> {
    /// How many pieces of work are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Whether something is under way under this key.
    #[must_use]
    pub fn has(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// Begins work. What is done at once is returned with its key, as most work is; other work is under way from now
    /// on. Without a key it cannot be given up.
    pub fn begin(
        &mut self,
        key: Option<K>,
        mut work: impl Future<Output = T> + Send + Unpin + 'static,
        context: &mut Context<'_>,
    ) -> Option<(Option<K>, T)> {
        if let Poll::Ready(outcome) = Pin::new(&mut work).poll(context) {
            return Some((key, outcome));
        }
        let (handle, registration) = AbortHandle::new_pair();
        let known = key.clone();
        let work: Work<K, T> = Box::pin(work.map(move |outcome| (known, outcome)));
        self.work.push(Abortable::new(work, registration));
        if let Some(key) = key {
            self.by_key.insert(key, handle);
        }
        None
    }

    /// Gives up what is under way under this key; false if nothing is. Its room is free after the next poll.
    pub fn cancel(&mut self, key: &K) -> bool {
        let handle = self.by_key.remove(key);
        handle.inspect(AbortHandle::abort).is_some()
    }

    /// The next outcome with its key, if there is one.
    pub fn poll_one(&mut self, context: &mut Context<'_>) -> Option<(Option<K>, T)> {
        loop {
            match self.work.poll_next_unpin(context) {
                Poll::Ready(Some(Ok((key, outcome)))) => {
                    if let Some(key) = &key {
                        self.by_key.remove(key);
                    }
                    return Some((key, outcome));
                }
                // The work was given up.
                Poll::Ready(Some(Err(_))) => {}
                Poll::Ready(None) | Poll::Pending => return None,
            }
        }
    }
}
