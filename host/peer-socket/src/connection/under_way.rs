//! What the program began and waits for: calls, events, jobs.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use weir_host::Error;
use weir_peer::frame;

use super::Close;

type Outcome = Result<Bytes, Error>;

type Work = Pin<Box<dyn Future<Output = (u32, Outcome)> + Send>>;

#[derive(Default)]
pub(super) struct UnderWay {
    work: FuturesUnordered<Abortable<Work>>,
    by_id: HashMap<u32, AbortHandle>,
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").field("ids", &self.by_id.len()).finish_non_exhaustive()
    }
}

impl UnderWay {
    /// Fails if the id is in use.
    pub(super) fn check(&self, id: u32) -> Result<(), Close> {
        match self.by_id.contains_key(&id) {
            true => Err(Close::new(frame::close::PROTOCOL, format!("the id {id} is under way already"))),
            false => Ok(()),
        }
    }

    pub(super) fn add(&mut self, id: u32, work: impl Future<Output = Outcome> + Send + 'static) {
        let (handle, registration) = AbortHandle::new_pair();
        let work: Work = Box::pin(work.map(move |outcome| (id, outcome)));
        self.work.push(Abortable::new(work, registration));
        if id != 0 {
            self.by_id.insert(id, handle);
        }
    }

    /// Gives up what was begun under this id. It makes room at the next poll.
    pub(super) fn cancel(&mut self, id: u32) {
        if let Some(handle) = self.by_id.remove(&id) {
            handle.abort();
        }
    }

    /// The next answer, if there is one.
    pub(super) fn poll_one(&mut self, context: &mut Context<'_>) -> Option<(u32, Outcome)> {
        loop {
            match self.work.poll_next_unpin(context) {
                Poll::Ready(Some(Ok((id, outcome)))) => {
                    self.by_id.remove(&id);
                    return Some((id, outcome));
                }
                // Given up.
                Poll::Ready(Some(Err(_))) => {}
                Poll::Ready(None) | Poll::Pending => return None,
            }
        }
    }
}
