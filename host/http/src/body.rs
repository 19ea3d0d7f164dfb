//! The bodies of requests and answers, as they pass between a guest and the sender's thread.

use std::{
    error::Error,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use tokio::{
    sync::{mpsc, watch},
    time::{Sleep, sleep},
};

use crate::{
    client::{InFlight, Order, Shared},
    error::HttpError,
};

/// Why a guest's body ended before its end.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// Frames of an answer that may wait for the guest, besides what the connection has read.
const FRAMES: usize = 2;

/// The body of an answer. Dropped before its end, its connection is closed.
#[derive(Debug)]
pub struct ResponseBody {
    frames: mpsc::Receiver<Frame<Bytes>>,
    ending: Arc<OnceLock<Result<(), HttpError>>>,
    /// Taken at the end.
    in_flight: Option<InFlight>,
}

/// The other end of a [`ResponseBody`]. Dropped without an ending, the body was cut off.
#[derive(Debug)]
pub(crate) struct ResponseFrames {
    pub(crate) frames: mpsc::Sender<Frame<Bytes>>,
    ending: Arc<OnceLock<Result<(), HttpError>>>,
}

/// A body without its guest's place among the requests in flight.
pub(crate) type BareBody = (mpsc::Receiver<Frame<Bytes>>, Arc<OnceLock<Result<(), HttpError>>>);

pub(crate) fn response_body() -> (ResponseFrames, BareBody) {
    let (sender, receiver) = mpsc::channel(FRAMES);
    let ending = Arc::<OnceLock<_>>::default();
    (ResponseFrames { frames: sender, ending: ending.clone() }, (receiver, ending))
}

impl ResponseFrames {
    /// The body ends here, or fails.
    pub(crate) fn end(self, ending: Result<(), HttpError>) {
        let _first = self.ending.set(ending);
    }
}

impl ResponseBody {
    pub(crate) fn new((frames, ending): BareBody, in_flight: InFlight) -> Self {
        Self { frames, ending, in_flight: Some(in_flight) }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Some(frame) = ready!(self.frames.poll_recv(context)) {
            return Poll::Ready(Some(Ok(frame)));
        }
        let has_ended = self.in_flight.take().is_none();
        Poll::Ready(match self.ending.get() {
            // It failed once.
            _ if has_ended => None,
            Some(Ok(())) => None,
            Some(Err(error)) => Some(Err(error.clone())),
            None => Some(Err(HttpError::ResponseIncomplete)),
        })
    }
}

/// A guest's body on its way out: counted, and within its guest's rate.
pub(crate) struct CountedBody {
    body: RequestBody,
    /// Taken from the body already.
    first: Option<Frame<Bytes>>,
    client: Arc<Shared>,
    /// Fails once the guest has ended.
    ended: watch::Receiver<()>,
    progress: Arc<Progress>,
    wait: Option<Pin<Box<Sleep>>>,
}

/// When a request was last seen to go on.
#[derive(Debug)]
pub(crate) struct Progress(Mutex<Instant>);

impl Progress {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new(now))
    }

    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl CountedBody {
    pub(crate) fn new(
        body: RequestBody,
        first: Option<Frame<Bytes>>,
        order: &Order,
        progress: Arc<Progress>,
    ) -> Self {
        let (client, ended) = (order.client.clone(), order.ended.clone());
        Self { body, first, client, ended, progress, wait: None }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(context));
            self.wait = None;
            self.progress.set(Instant::now());
        }
        let frame = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => ready!(Pin::new(&mut self.body).poll_frame(context)),
        };
        // The bodies of a guest that has ended end with it, which must not look like their end to a server.
        if frame.is_none() && self.ended.has_changed().is_err() {
            return Poll::Ready(Some(Err("the guest has ended".into())));
        }
        let now = Instant::now();
        self.progress.set(now);
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let wait = self.client.sent(data.len() as u64, now);
            self.wait = wait.map(|wait| Box::pin(sleep(wait)));
            // No server answers before it: the guest's own rate is not the server's silence.
            self.progress.set(now + wait.unwrap_or_default());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.first {
            Some(_) => SizeHint::default(),
            None => self.body.size_hint(),
        }
    }
}
