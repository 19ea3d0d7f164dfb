//! Work of the embedding program on the worker thread, beside the extensions.

use std::{fmt, pin::Pin, time::Duration};

use tokio::{sync::watch, task::JoinSet};

pub use crate::parts::{Part, on_thread};
use crate::{client::Client, control::Control, parts::Parts, peers::Peers};

/// Time for attached work to end, such as to send answers to clients that do not read.
const GRACE: Duration = Duration::from_secs(1);

/// The handles of attached work: see [`Builder::attach`](crate::Builder::attach).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attached {
    /// Sends requests and events as Main, and subscribes.
    pub client: Client,
    /// Starts, stops and inspects extensions.
    pub control: Control,
    /// Begins sessions of programs outside Main.
    pub peers: Peers,
    /// Passes requests by HTTP to the extensions that serve them.
    #[cfg(feature = "http")]
    pub http: crate::http_servers::HttpServers,
    /// Tells the work when to end.
    pub closed: Closed,
    pub(crate) parts: Parts,
}

impl Attached {
    /// Registers the work as a part of Main with this name: [`Control::parts`] lists it from now on.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        self.parts.part(name)
    }

    /// Keeps a part of Main serving: runs `work`, and runs it again when it ends or panics before Main does. The pauses
    /// between are 100 ms at first, and grow to 10 s; after a minute of service they are short again. Each end is
    /// logged with its reason, shown by [`Control::parts`] and counted.
    pub async fn supervise<W>(self, name: &'static str, mut work: impl FnMut(Self) -> W)
    where
        W: Future<Output = Result<(), String>>,
    {
        let part = self.part(name);
        part.keep(self.closed.clone(), || work(self.clone())).await;
    }
}

/// The signal that Main has stopped everything else. Main then waits up to a second for every clone to be dropped.
#[derive(Clone, Debug)]
pub struct Closed(pub(crate) watch::Receiver<bool>);

impl Closed {
    /// Whether Main has stopped everything else.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // The sender is dropped when Main has ended.
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until Main has stopped everything else.
    pub async fn wait(&mut self) {
        // The sender is dropped when Main has ended.
        let _gone = self.0.wait_for(|closing| *closing).await;
    }
}

pub(crate) struct Attachment(Box<dyn FnOnce(Attached) -> Work + Send>);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Attachment {
    pub(crate) fn new<W>(work: impl FnOnce(Attached) -> W + Send + 'static) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        Self(Box::new(|attached| Box::pin(work(attached))))
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment").finish_non_exhaustive()
    }
}

/// Attached work that runs.
#[derive(Debug)]
pub(crate) struct Attachments {
    closing: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Attachments {
    /// Begins each of the attachments with a clone of `attached`. `closing` tells them to end.
    pub(crate) fn begin(
        attachments: Vec<Attachment>,
        attached: Attached,
        closing: watch::Sender<bool>,
    ) -> Self {
        let mut running = JoinSet::new();
        for Attachment(work) in attachments {
            let attached = attached.clone();
            // `work` is called inside the task, so that a panic of the call ends this work alone.
            running.spawn(async move { work(attached).await });
        }
        // `close` waits until every clone is dropped.
        drop(attached);
        Self { closing, running }
    }

    /// Tells the work to end, waits for that for at most [`GRACE`], and aborts what still runs.
    pub(crate) async fn close(mut self) {
        self.closing.send_replace(true);
        if tokio::time::timeout(GRACE, self.closing.closed()).await.is_err() {
            tracing::warn!(
                "attached work did not end within {} s and was cut off, such as answers that a client of a \
                 socket does not read",
                GRACE.as_secs()
            );
        }
        self.running.abort_all();
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!("attached work has panicked: {error}");
            }
        }
    }
}
