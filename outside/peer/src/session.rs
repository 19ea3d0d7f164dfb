//! One session: what is under way, what waits, and how frames change both.
//!
//! The tables are plain values under one lock; [`Session::accept`] decides what a frame does to them, without I/O.

mod accept;
mod drive;
mod mailbox;
mod outgoing;
mod tables;

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use weir_names::{Error, TraceContext};

use crate::{
    Ended, Options,
    frame::{COUNTS_SINCE, FromPeer, TRACES_SINCE},
};

pub(crate) use self::{
    accept::not_answered,
    mailbox::Mailbox,
    outgoing::Outgoing,
    tables::{GivenUp, Pending, QueueState, Tables, WaitingJob, WaitingRequest},
};

/// What Main's welcome said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) version: u16,
    pub(crate) session: u64,
    pub(crate) message_size: u32,
    pub(crate) in_flight: u32,
    pub(crate) subscriptions: u32,
}

/// One session, as its task and all its handles share it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) limits: Limits,
    pub(crate) outgoing: Outgoing,
    /// Most requests that wait or are in hand.
    requests: usize,
    /// Most events that are on their way or wait.
    events: u32,
    tables: Mutex<Tables>,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: Option<Ended>,
    /// Whether the session's task has ended, so that nothing more is written.
    is_over: bool,
}

impl Session {
    pub(crate) fn new(options: &Options, limits: Limits) -> Self {
        Self {
            limits,
            outgoing: Outgoing::default(),
            requests: usize::try_from(options.requests).unwrap_or(usize::MAX),
            events: options.events,
            tables: Mutex::new(Tables::new(options.events)),
            state: watch::Sender::default(),
        }
    }

    /// Notes what waits for an answer, and returns its id. Fails if too much is under way, or the session has ended.
    pub(crate) fn register(&self, pending: Pending) -> Result<u32, Error> {
        self.tables().register(pending, self.limits.in_flight)
    }

    /// Whether Main knows `TRACE` and `DESCRIBE`.
    pub(crate) fn speaks_version_2(&self) -> bool {
        self.limits.version >= TRACES_SINCE
    }

    /// Whether Main knows `COUNTED` and `REFUSE`.
    pub(crate) fn speaks_version_3(&self) -> bool {
        self.limits.version >= COUNTS_SINCE
    }

    /// Fails if Main takes no payload of this many bytes.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Error> {
        let allowed = self.limits.message_size;
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= allowed => Ok(()),
            _ => Err(Error::TooLarge { bytes: bytes as u64, allowed: allowed.into() }),
        }
    }

    /// Counts events that wait no longer. Once they are half of all that may wait, lets Main send as many more.
    pub(crate) fn renew_credit(&self, events: usize) {
        if events == 0 {
            return;
        }
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        if let Some(events) = self.tables().renew_credit(events, self.events) {
            self.outgoing.push(&FromPeer::Credit { events });
        }
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session for this reason, and wakes all that waits. Does nothing if the session has ended already.
    pub(crate) fn finish(&self, ended: Ended) {
        let is_first = self.state.send_if_modified(|state| {
            let is_first = state.ended.is_none();
            state.ended.get_or_insert(ended);
            is_first
        });
        if is_first {
            self.outgoing.end();
            // The tables that stay in place are those of an ended session, which take nothing more.
            let tables = std::mem::take(&mut *self.tables());
            tables.wake_all();
        }
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> Ended {
        self.wait_for(|state| state.ended.clone()).await
    }

    /// Waits until the task has ended, and nothing is written any more.
    pub(crate) async fn over(&self) -> Ended {
        self.wait_for(|state| state.ended.clone().filter(|_| state.is_over)).await
    }

    pub(crate) fn why_ended(&self) -> Option<Ended> {
        self.state.borrow().ended.clone()
    }

    async fn wait_for(&self, of: impl Fn(&State) -> Option<Ended>) -> Ended {
        let mut changes = self.state.subscribe();
        let state = changes.wait_for(|state| of(state).is_some()).await;
        // The wait cannot fail: the sender lives as long as the session.
        state.ok().and_then(|state| of(&state)).unwrap_or(Ended::Left)
    }
}

/// Gives up what was asked if its future is dropped before the answer has come.
struct CancelGuard<'s> {
    session: &'s Session,
    id: u32,
    is_armed: bool,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.is_armed && self.session.tables().pending.remove(&self.id).is_some() {
            self.session.outgoing.push(&FromPeer::Cancel { id: self.id });
        }
    }
}

/// A share in a session. With the last one the session ends.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    owner: Arc<Owner>,
    /// What is sent by this handle is part of this span, if Main understands that.
    span: Option<TraceContext>,
}

/// Ends the session when the last handle drops it.
#[derive(Debug)]
struct Owner(Arc<Session>);

impl Handle {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { owner: Arc::new(Owner(session)), span: None }
    }

    /// A handle by which all that is sent is part of this span.
    pub(crate) fn part_of(&self, span: Option<TraceContext>) -> Self {
        Self { owner: self.owner.clone(), span: span.filter(|_| self.speaks_version_2()) }
    }

    /// The session, without a share in it.
    pub(crate) fn session(&self) -> Arc<Session> {
        self.owner.0.clone()
    }

    /// Sends what `frame` makes of an id, and waits for its answer. If the future is dropped, Main is told.
    pub(crate) async fn ask<'f>(
        &self,
        payload_size: usize,
        frame: impl FnOnce(u32) -> FromPeer<'f>,
    ) -> Result<Bytes, Error> {
        self.ask_counted(0, payload_size, frame).await
    }

    /// Sends what `frame` makes of an id, and waits for its answer. `count` is what was counted of a job or an event
    /// before it came to Main. If the future is dropped, Main is told.
    pub(crate) async fn ask_counted<'f>(
        &self,
        count: u64,
        payload_size: usize,
        frame: impl FnOnce(u32) -> FromPeer<'f>,
    ) -> Result<Bytes, Error> {
        self.check_size(payload_size)?;
        self.outgoing.room().await?;
        let (sender, receiver) = oneshot::channel();
        let id = self.register(Pending::Answer(sender))?;
        let mut guard = CancelGuard { session: self, id, is_armed: true };
        let frame = frame(id);
        match frame {
            FromPeer::Call { .. } | FromPeer::Publish { .. } | FromPeer::Put { .. } => {
                self.push_as_part(count, &frame)
            }
            _ => self.outgoing.push(&frame),
        }
        let answer = receiver.await.unwrap_or(Err(Error::PeerGone));
        guard.is_armed = false;
        answer
    }

    /// Sends a call, an event or a job, after frames that tell Main its span and `count`, if Main understands them.
    /// `count` is what was counted of the job or event before it came to Main.
    pub(crate) fn push_as_part(&self, count: u64, frame: &FromPeer<'_>) {
        let span = self.span.map(|span| FromPeer::Trace { span });
        let is_known = count > 0 && self.speaks_version_3();
        let counted = is_known.then_some(FromPeer::Counted { count });
        self.outgoing.push_all([counted.as_ref(), span.as_ref(), Some(frame)]);
    }
}

impl Deref for Handle {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.owner.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.finish(Ended::Left);
    }
}
