//! The bodies of requests and answers, as they pass between a guest and the sender's thread.

use std::{
    error::Error,
    pin::Pin,
    sync::{Arc, OnceLock, Weak},
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Sleep, sleep},
};

use crate::{
    client::{self, InFlight, Order},
    error::HttpError,
};

/// Why a guest's body ended before its end.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// The most frames of an answer that wait for the guest, besides what the connection has read.
const FRAMES: usize = 2;

/// The body of an answer. If it is dropped before its end, its connection is closed. After a failure, each further
/// frame is the same failure.
#[derive(Debug)]
pub struct ResponseBody(BareBody);

/// The writing end of a [`ResponseBody`]. If it is dropped without [`end`](Self::end), the body fails as cut off.
#[derive(Debug)]
pub(crate) struct ResponseFrames {
    pub(crate) frames: mpsc::Sender<Frame<Bytes>>,
    body: Weak<Shared>,
}

/// The body of an answer that does not hold its guest's place among the requests in flight yet.
#[derive(Debug)]
pub(crate) struct BareBody(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// What the body holds. `None` once it has ended.
    waiting: Mutex<Option<Waiting>>,
    ending: OnceLock<Result<(), HttpError>>,
}

/// What an answer holds until it is read.
#[derive(Debug)]
struct Waiting {
    frames: mpsc::Receiver<Frame<Bytes>>,
    in_flight: Option<InFlight>,
}

pub(crate) fn response_body() -> (ResponseFrames, BareBody) {
    let (sender, frames) = mpsc::channel(FRAMES);
    let waiting = Mutex::new(Some(Waiting { frames, in_flight: None }));
    let body = Arc::new(Shared { waiting, ending: OnceLock::new() });
    (ResponseFrames { frames: sender, body: Arc::downgrade(&body) }, BareBody(body))
}

impl ResponseFrames {
    /// Ends the body: as whole, or with a failure.
    pub(crate) fn end(self, ending: Result<(), HttpError>) {
        if let Some(body) = self.body.upgrade() {
            let _first = body.ending.set(ending);
        }
    }

    /// Ends the body with a failure, and drops the frames that wait: the guest may never read them.
    pub(crate) fn cut(self, why: HttpError) {
        let body = self.body.clone();
        // `end` sets the reason before it drops the sender, which wakes a waiting reader.
        self.end(Err(why));
        if let Some(body) = body.upgrade() {
            let _waiting = body.waiting.lock().take();
        }
    }
}

impl ResponseBody {
    pub(crate) fn new(body: BareBody, in_flight: InFlight) -> Self {
        if let Some(waiting) = &mut *body.0.waiting.lock() {
            waiting.in_flight = Some(in_flight);
        }
        Self(body)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let mut waiting = self.0.0.waiting.lock();
        if let Some(held) = &mut *waiting {
            if let Some(frame) = ready!(held.frames.poll_recv(context)) {
                return Poll::Ready(Some(Ok(frame)));
            }
            *waiting = None;
        }
        Poll::Ready(match self.0.0.ending.get() {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(Err(error.clone())),
            None => Some(Err(HttpError::ResponseIncomplete)),
        })
    }
}

/// The body of a guest's request as it is sent: its bytes are counted and kept within the guest's rate.
pub(crate) struct CountedBody {
    body: RequestBody,
    /// The first frame, if it was taken from the body already.
    first: Option<Frame<Bytes>>,
    client: Arc<client::Shared>,
    /// Fails once the guest has ended.
    ended: watch::Receiver<()>,
    /// When the request was last seen to go on, or when a wait for the guest's rate will end.
    progress: Arc<Mutex<Instant>>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl CountedBody {
    pub(crate) fn new(
        body: RequestBody,
        first: Option<Frame<Bytes>>,
        order: &Order,
        progress: Arc<Mutex<Instant>>,
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
            *self.progress.lock() = Instant::now();
        }
        let frame = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => ready!(Pin::new(&mut self.body).poll_frame(context)),
        };
        // The body ends early if its guest has ended. That must not look like a whole body to the server.
        if frame.is_none() && self.ended.has_changed().is_err() {
            return Poll::Ready(Some(Err("the guest has ended".into())));
        }
        let now = Instant::now();
        *self.progress.lock() = now;
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let wait = self.client.sent(data.len() as u64, now);
            self.wait = wait.map(|wait| Box::pin(sleep(wait)));
            // The server cannot answer before this wait ends, so the wait does not count as the server's silence.
            *self.progress.lock() = now + wait.unwrap_or_default();
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
