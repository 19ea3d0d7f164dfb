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

/// After so many looks a connection is judged whatever it may still say.
const LOOKS: u32 = 6;

/// What the requests of one connection do.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Pieces of answers that were asked for.
    taken: AtomicU64,
    /// Answers of which a piece waits for the client.
    unread: AtomicUsize,
    /// Notified once an answer asks for the end of its connection.
    closes: Notify,
}

/// What can be seen of a connection at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    begun: u64,
    ended: u64,
    taken: u64,
    written: u64,
    is_unread: bool,
}

/// The last look at a connection, and for how many its client has taken nothing though something waits for it.
struct Looks {
    last: Look,
    stuck: u32,
}

impl Watch {
    /// Notes a request, and makes its head what other parts read: the authority is its `Host`, unless it has one, and all
    /// cookies are one header (RFC 9113, 8.2.3).
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Under {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let authority = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
        let headers = request.headers_mut();
        if let Some(Ok(authority)) = authority {
            headers.entry(header::HOST).or_insert(authority);
        }
        let cookies: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
        if cookies.len() > 1
            && let Ok(all) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
        {
            headers.insert(header::COOKIE, all);
        }
        Under(self.clone())
    }

    /// Waits until the connection is to begin its end: an answer says so, or it has had no request for `patience`, or up to
    /// twice as long. Returns whether what is under way may end. It may not if the client reads nothing of an answer for so
    /// long.
    pub(crate) async fn end(&self, flow: &Flow, patience: Duration) -> bool {
        let mut looks = Looks { last: self.look(flow), stuck: 0 };
        loop {
            tokio::select! {
                () = self.closes.notified() => return true,
                () = tokio::time::sleep(patience) => {}
            }
            let (before, now) = (looks.last, self.look(flow));
            if looks.reads_nothing(now) {
                return false;
            }
            if now.begun == now.ended && now.ended == before.ended {
                return true;
            }
        }
    }

    /// Waits until a connection that ends is to be cut off: nothing is under way and nothing is written any more, or the
    /// client reads nothing, or it has begun something long after it was told of the end.
    pub(crate) async fn overdue(&self, flow: &Flow, patience: Duration) {
        let mut looks = Looks { last: self.look(flow), stuck: 0 };
        for number in 1_u32.. {
            tokio::time::sleep(patience).await;
            let (before, now) = (looks.last, self.look(flow));
            // What was handed over may wait for a slow client still.
            let is_done = now.begun == now.ended && (now == before || number >= LOOKS);
            let goes_on = number > LOOKS && now.begun > before.begun;
            if is_done || goes_on || looks.reads_nothing(now) {
                return;
            }
        }
    }

    fn look(&self, flow: &Flow) -> Look {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let [begun, ended, taken] = [&self.begun, &self.ended, &self.taken].map(count);
        let is_unread = self.unread.load(Ordering::Relaxed) > 0;
        Look { begun, ended, taken, written: flow.written(), is_unread }
    }
}

impl Looks {
    /// Whether the client reads nothing. What is written may be other than answers, so that alone is believed for a while.
    fn reads_nothing(&mut self, now: Look) -> bool {
        let before = std::mem::replace(&mut self.last, now);
        let is_stuck = now.is_unread && before.is_unread && now.taken == before.taken;
        self.stuck = if is_stuck { self.stuck + 1 } else { 0 };
        is_stuck && (now.written == before.written || self.stuck >= LOOKS)
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
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of an answer. It is asked for another piece once the client has had room for the one before.
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
        self.under.0.taken.fetch_add(1, Ordering::Relaxed);
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

    async fn overdue(watch: &Watch) -> u64 {
        let began = tokio::time::Instant::now();
        watch.overdue(&Flow::default(), PATIENCE).await;
        began.elapsed().as_secs()
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
    async fn a_request_that_has_just_ended_gives_time_for_the_next() {
        let watch = Arc::new(Watch::default());
        let working = watch.begin(&mut Request::new(()));
        let just = async {
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            drop(working);
        };
        let (ended, ()) = tokio::join!(end(&watch), just);
        assert_eq!(ended, (true, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_was_told_to_end_is_cut_off_once_it_does_nothing_or_goes_on() {
        let watch = Arc::new(Watch::default());
        assert_eq!(overdue(&watch).await, 10);
        let working = watch.begin(&mut Request::new(()));
        assert!(tokio::time::timeout(PATIENCE * 100, overdue(&watch)).await.is_err());
        let goes_on = async {
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                drop(watch.begin(&mut Request::new(())));
            }
        };
        let (cut, ()) = tokio::join!(overdue(&watch), goes_on);
        assert_eq!(cut, 70);
        drop(working);
        assert_eq!(overdue(&watch).await, 10);
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
    async fn what_is_still_written_is_waited_for_but_not_for_ever() {
        let (watch, flow) = (Arc::new(Watch::default()), Flow::default());
        let working = watch.begin(&mut Request::new(()));
        drop(working);
        let writes = async |seconds: u64| {
            for _ in 0..seconds {
                tokio::time::sleep(Duration::from_secs(1)).await;
                flow.wrote(1);
            }
        };
        let began = tokio::time::Instant::now();
        tokio::join!(watch.overdue(&flow, PATIENCE), writes(25));
        assert_eq!(began.elapsed().as_secs(), 40);
        // Answers of which a piece waits, while a client sends pings.
        let mut stuck = watch.begin(&mut Request::new(())).answered(answer()).into_body();
        stuck.frame().await.unwrap().unwrap();
        let began = tokio::time::Instant::now();
        let (may_end, ()) = tokio::join!(watch.end(&flow, PATIENCE), writes(60));
        assert_eq!((may_end, began.elapsed().as_secs()), (false, 60));
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
    fn cookies_are_one_header() {
        let watch = Arc::new(Watch::default());
        let mut request =
            Request::get("/").header("cookie", "a=1").header("cookie", "b=2; c=3").body(()).unwrap();
        drop(watch.begin(&mut request));
        let cookies: Vec<_> = request.headers().get_all("cookie").iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3"]);
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
