//! HTTP/2, which clients choose within TLS. Here is what its framing lacks beside that of HTTP/1.1: an end to connections
//! that ask for nothing and to clients that read nothing, and the end of a connection after its answer.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Request, Response, header},
};
use hyper::{
    body::{Body as HttpBody, Frame, SizeHint},
    server::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;

use crate::stream::Flow;

/// Requests of one connection at once.
const STREAMS: u32 = 32;

/// Bytes of one request that may wait for their reader. A connection has room for those of all its requests: else some that
/// wait would hold up those that are read.
const WINDOW: u32 = 32 * 1024;

/// Bytes of one answer that wait for the client.
const SEND_BUFFER: usize = 64 * 1024;

/// How connections are served. Their heads have at most `max_head` bytes.
pub(crate) fn builder(max_head: u32) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
    builder.initial_stream_window_size(WINDOW).initial_connection_window_size(STREAMS * WINDOW);
    builder.max_header_list_size(max_head).max_send_buf_size(SEND_BUFFER);
    builder
}

/// What the requests of one connection do.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    begun: AtomicU64,
    open: AtomicUsize,
    /// Answers of which a piece waits for the client.
    unread: AtomicUsize,
    /// Notified once an answer asks for the end of its connection.
    closes: Notify,
}

impl Watch {
    /// Notes a request. Its `Host` is what other parts read, so it is set to the authority if that stands alone.
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Under {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        let authority = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
        if let Some(Ok(authority)) = authority {
            request.headers_mut().entry(header::HOST).or_insert(authority);
        }
        Under(self.clone())
    }

    /// Waits until the connection is to end. A connection without a request for `patience`, or up to twice as long, ends; so
    /// does one whose client reads nothing of an answer for so long. Returns whether what is under way may end.
    pub(crate) async fn end(&self, flow: &Flow, patience: Duration) -> bool {
        let look = || {
            let written = flow.written();
            (self.begun.load(Ordering::Relaxed), written, self.unread.load(Ordering::Relaxed) > 0)
        };
        let mut before = look();
        loop {
            tokio::select! {
                () = self.closes.notified() => return true,
                () = tokio::time::sleep(patience) => {}
            }
            let (begun, written, is_unread) = look();
            if is_unread && (written, true) == (before.1, before.2) {
                return false;
            }
            if self.open.load(Ordering::Relaxed) == 0 && begun == before.0 {
                return true;
            }
            before = (begun, written, is_unread);
        }
    }
}

/// A request that is under way until the end of its answer.
#[derive(Debug)]
pub(crate) struct Under(Arc<Watch>);

impl Under {
    /// Makes the answer one of HTTP/2.
    pub(crate) fn answered(self, mut answer: Response<Body>) -> Response<Body> {
        // It says that the connection ends, in the words of HTTP/1.1.
        if answer.headers_mut().remove(header::CONNECTION).is_some() {
            self.0.closes.notify_one();
        }
        answer.map(|body| Body::new(WatchedBody { body, is_unread: false, under: self }))
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer. It is asked for a piece only when the client has room for one.
struct WatchedBody {
    body: Body,
    is_unread: bool,
    under: Under,
}

impl WatchedBody {
    fn set_unread(&mut self, is_unread: bool) {
        let unread = &self.under.0.unread;
        match (self.is_unread, is_unread) {
            (false, true) => drop(unread.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(unread.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.is_unread = is_unread;
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.set_unread(false);
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.set_unread(false);
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.set_unread(matches!(frame, Some(Ok(_))));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn answer() -> Response<Body> {
        let pieces =
            futures_util::stream::repeat_with(|| Ok::<_, axum::Error>(Frame::data(Bytes::from("x"))));
        Response::new(Body::new(StreamBody::new(pieces)))
    }

    async fn end(watch: &Watch) -> (bool, u64) {
        let began = tokio::time::Instant::now();
        let end = watch.end(&Flow::default(), PATIENCE).await;
        (end, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_ends_and_one_that_works_does_not() {
        let watch = Arc::new(Watch::default());
        assert_eq!(end(&watch).await, (true, 10));
        let working = watch.begin(&mut Request::new(()));
        assert!(tokio::time::timeout(PATIENCE * 100, end(&watch)).await.is_err());
        drop(working);
        assert_eq!(end(&watch).await, (true, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_cut_off_and_one_that_waits_is_not() {
        let watch = Arc::new(Watch::default());
        let mut read = watch.begin(&mut Request::new(())).answered(answer()).into_body();
        assert!(tokio::time::timeout(PATIENCE * 100, end(&watch)).await.is_err());
        read.frame().await.unwrap().unwrap();
        assert_eq!(end(&watch).await, (false, 10));
        drop(read);
        assert_eq!(end(&watch).await, (true, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_closes_its_connection_ends_it() {
        let watch = Arc::new(Watch::default());
        let mut closing = answer();
        closing.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let answer = watch.begin(&mut Request::new(())).answered(closing);
        assert!(!answer.headers().contains_key(header::CONNECTION));
        assert_eq!(end(&watch).await, (true, 0));
    }

    #[test]
    fn the_authority_is_the_host_unless_there_is_one() {
        let watch = Arc::new(Watch::default());
        let mut request = Request::get("https://a.example/b").body(()).unwrap();
        drop(watch.begin(&mut request));
        assert_eq!(request.headers()[header::HOST], "a.example");
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("b.example"));
        drop(watch.begin(&mut request));
        assert_eq!(request.headers()[header::HOST], "b.example");
    }
}
