//! The client of one guest: which requests the guest may send, how much, and what is under way.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Request, Response};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot, watch};
use weir_config::{HttpGrant, Limits};
use weir_metrics::Usage;

use crate::{
    admission::{Route, admit},
    body::{BareBody, RequestBody, ResponseBody},
    connect::LOOKUPS_OF_GUEST,
    error::HttpError,
    exchange::{begin_body, charged},
    sender::HttpSender,
};

/// The grants of one guest, and where its use is counted.
pub struct HttpGuest {
    /// The requests that the guest may send.
    pub grants: Arc<[HttpGrant]>,
    /// Where the guest's use is shown.
    pub usage: Arc<Usage>,
    /// Nanoseconds of work for the guest outside of its own turns, to be charged to its share.
    pub worked: Arc<AtomicU64>,
    /// Called with a message about requests that are refused, or ended by `http.total-timeout`: at the first of a kind,
    /// and then each time that their number has doubled.
    pub say: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for HttpGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpGuest").field("grants", &self.grants).finish_non_exhaustive()
    }
}

/// Times that one request may take; those of the guest's limits apply, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeouts {
    /// Until the connection is made.
    pub connect: Option<Duration>,
    /// Until the answer begins, after the last part of the request.
    pub first_byte: Option<Duration>,
    /// Between two parts of the answer.
    pub between_bytes: Option<Duration>,
    /// When the request is ended, whatever is under way.
    pub deadline: Option<Instant>,
}

/// Sends the requests of one guest. When it is dropped, all its requests end, and its connections close unless it was made
/// [beside](Self::beside) another client.
pub struct HttpClient {
    /// Dropping this ends everything, so it is the first field.
    alive: watch::Sender<()>,
    /// Fails once the client is dropped that the others were made beside. Connections, which all of them use, stay till then.
    all: watch::Receiver<()>,
    sender: HttpSender,
    shared: Arc<Shared>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Another client of the same guest, for an instance beside. Both have the guest's limits and connections together, and
    /// each ends with its own requests.
    #[must_use]
    pub fn beside(&self) -> Self {
        let Self { all, sender, shared, .. } = self;
        Self {
            alive: watch::Sender::new(()),
            all: all.clone(),
            sender: sender.clone(),
            shared: shared.clone(),
        }
    }
}

/// What the sender's thread knows of a guest.
pub(crate) struct Shared {
    /// The number of the guest, which no other guest has.
    pub(crate) id: u64,
    guest: HttpGuest,
    in_flight: AtomicU32,
    max_in_flight: u32,
    /// Permits for names that are resolved at once.
    pub(crate) lookups: Arc<Semaphore>,
    /// Permits for connections: as many as `http.in-flight`, and at most half of all connections.
    pub(crate) connections: Arc<Semaphore>,
    rate: Pace,
    bytes_in: Pace,
    bytes_out: Pace,
    pub(crate) header_size: u64,
    timeout: Duration,
    total_timeout: Duration,
}

/// A request with its bounds, as the sender's thread gets it.
pub(crate) struct Order {
    pub(crate) client: Arc<Shared>,
    /// Fails once the client is dropped.
    pub(crate) ended: watch::Receiver<()>,
    /// Fails once the client is dropped that has the connections.
    pub(crate) all: watch::Receiver<()>,
    pub(crate) route: Route,
    /// The most time until the connection is made: the guest's `http.timeout`, or less.
    pub(crate) connect: Duration,
    /// The most time until the answer begins, after the last part of the request: the guest's `http.timeout`, or less.
    pub(crate) first_byte: Duration,
    /// The most time between two parts of the answer: the guest's `http.timeout`, or less.
    pub(crate) between_bytes: Duration,
    /// When the exchange is ended, wherever it is between the start of the request and the end of the answer.
    pub(crate) deadline: Instant,
    /// Whether `deadline` comes from the operator's `http.total-timeout`, rather than from the guest.
    is_total: bool,
    /// The way back to the guest. `None` once the thread has taken it.
    pub(crate) reply: Option<oneshot::Sender<Reply>>,
}

/// What the sender's thread answers.
pub(crate) type Reply = Result<Response<BareBody>, HttpError>;

/// A place among the guest's requests in flight.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Shared>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

impl HttpClient {
    pub(crate) fn new(sender: HttpSender, id: u64, guest: HttpGuest, limits: &Limits) -> Self {
        let now = Instant::now();
        let connections = usize::try_from(limits.http_in_flight).unwrap_or(usize::MAX).min(sender.share());
        let shared = Shared {
            id,
            guest,
            in_flight: AtomicU32::new(0),
            max_in_flight: limits.http_in_flight,
            lookups: Arc::new(Semaphore::new(LOOKUPS_OF_GUEST)),
            connections: Arc::new(Semaphore::new(connections)),
            rate: Pace::new(limits.http_rate.into(), now),
            bytes_in: Pace::new(limits.http_bytes_in, now),
            bytes_out: Pace::new(limits.http_bytes_out, now),
            header_size: limits.http_header_size,
            timeout: limits.http_timeout,
            total_timeout: limits.http_total_timeout,
        };
        let alive = watch::Sender::new(());
        Self { all: alive.subscribe(), alive, sender, shared: Arc::new(shared) }
    }

    /// Sends a request with an absolute URL. Sets the request's `Host`.
    ///
    /// # Errors
    ///
    /// Fails at once for a request that is not allowed, has too large headers, or is one too many in flight. The future
    /// fails for what goes wrong later. It sends the request when it is first polled, in a tokio runtime with timers.
    /// Dropping the future ends the request.
    pub fn send(
        &self,
        request: Request<RequestBody>,
        timeouts: Timeouts,
    ) -> Result<impl Future<Output = Result<Response<ResponseBody>, HttpError>> + Send + use<>, HttpError>
    {
        let (order, reply, in_flight) =
            self.order(&request, timeouts).inspect_err(|error| self.shared.refuse(error))?;
        let (sender, shared) = (self.sender.clone(), self.shared.clone());
        let answer = async move {
            // The body begins here and not on the sender's thread, which each part of the body would wake.
            let begun = begin_body(request, &order).await?;
            sender.order(order, begun).inspect_err(|error| shared.refuse(error))?;
            // The sender is dropped now, so that an answer that nobody reads does not keep the sender's thread.
            drop(sender);
            let answer = reply.await.unwrap_or(Err(HttpError::ConnectionTerminated))?;
            Ok(answer.map(|body| ResponseBody::new(body, in_flight)))
        };
        Ok(charged(self.shared.clone(), answer))
    }

    fn order<B>(
        &self,
        request: &Request<B>,
        timeouts: Timeouts,
    ) -> Result<(Order, oneshot::Receiver<Reply>, InFlight), HttpError> {
        let shared = &self.shared;
        // The size is checked first, because what follows reads all headers.
        let (size, allowed) = (request_head_size(request), shared.header_size);
        if size > allowed {
            return Err(HttpError::RequestHeaders { size, allowed });
        }
        let route = admit(&shared.guest.grants, request.method(), request.uri())?;
        let in_flight = InFlight::take(shared)?;
        let (reply, answer) = oneshot::channel();
        let at_most = |timeout: Option<Duration>| timeout.map_or(shared.timeout, |it| it.min(shared.timeout));
        let total = Instant::now() + shared.total_timeout;
        let deadline = timeouts.deadline.map_or(total, |it| it.min(total));
        let order = Order {
            client: shared.clone(),
            ended: self.alive.subscribe(),
            all: self.all.clone(),
            route,
            connect: at_most(timeouts.connect),
            first_byte: at_most(timeouts.first_byte),
            between_bytes: at_most(timeouts.between_bytes),
            deadline,
            is_total: deadline == total,
            reply: Some(reply),
        };
        Ok((order, answer, in_flight))
    }
}

impl Order {
    /// The error of a request that ends at its deadline. Counts and reports it, if the deadline is the operator's.
    pub(crate) fn late(&self) -> HttpError {
        if self.is_total {
            self.client.time_out(&self.route.place.authority());
            return HttpError::TotalTimeout;
        }
        HttpError::ResponseTimeout
    }
}

/// Bytes of the request line and headers.
fn request_head_size<B>(request: &Request<B>) -> u64 {
    let line =
        request.method().as_str().len() + request.uri().path_and_query().map_or(1, |it| it.as_str().len());
    line as u64 + header_size(request.headers())
}

/// Bytes of headers, each with four more: `: ` after its name, and the line end.
pub(crate) fn header_size(headers: &http::HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}

impl Shared {
    /// Counts a refused request, and reports it through the guest's `say`.
    pub(crate) fn refuse(&self, error: &HttpError) {
        let refused = self.guest.usage.http_refused.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            (self.guest.say)(&format!("an HTTP request was refused: {error} ({refused} so far)"));
        }
    }

    /// Counts a request that `http.total-timeout` has ended, and reports it through the guest's `say`.
    fn time_out(&self, server: &str) {
        let ended = self.guest.usage.http_timed_out.fetch_add(1, Ordering::Relaxed) + 1;
        if ended.is_power_of_two() {
            (self.guest.say)(&format!(
                "an HTTP request to `{server}` was ended: {} ({ended} so far)",
                HttpError::TotalTimeout
            ));
        }
    }

    /// Counts a request; returns how long to wait before it begins.
    pub(crate) fn begin(&self, now: Instant) -> Option<Duration> {
        self.guest.usage.http_rate.add(now, 1);
        self.rate.take(1, now)
    }

    /// Counts bytes sent; returns how long to wait before more.
    pub(crate) fn sent(&self, bytes: u64, now: Instant) -> Option<Duration> {
        self.guest.usage.http_bytes_out.add(now, bytes);
        self.bytes_out.take(bytes, now)
    }

    /// Counts bytes received; returns how long to wait before more.
    pub(crate) fn received(&self, bytes: u64, now: Instant) -> Option<Duration> {
        self.guest.usage.http_bytes_in.add(now, bytes);
        self.bytes_in.take(bytes, now)
    }

    /// Counts time that the sender's thread worked for the guest.
    pub(crate) fn worked(&self, nanoseconds: u64) {
        self.guest.worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl InFlight {
    fn take(shared: &Arc<Shared>) -> Result<Self, HttpError> {
        let max = shared.max_in_flight;
        let raise = |now: u32| (now < max).then(|| now + 1);
        let raised = shared.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        raised.map_err(|_full| HttpError::TooMany)?;
        shared.guest.usage.http.raise(1);
        Ok(Self(shared.clone()))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.guest.usage.http.lower(1);
    }
}

/// A rate allows at once what it allows in this time.
const BURST: Duration = Duration::from_secs(1);

/// A rate: an amount per second.
#[derive(Debug)]
struct Pace {
    per_second: f64,
    /// When everything allowed so far would have come, had it come evenly.
    even: Mutex<Instant>,
}

impl Pace {
    fn new(per_second: u64, now: Instant) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
        let per_second = per_second.max(1) as f64;
        Self { per_second, even: Mutex::new(now) }
    }

    /// Counts an amount; returns how long to wait before more.
    fn take(&self, amount: u64, now: Instant) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
        let takes = Duration::from_secs_f64(amount as f64 / self.per_second);
        let mut even = self.even.lock();
        *even = (*even).max(now) + takes;
        even.checked_duration_since(now + BURST).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_time_no_more_comes_than_allowed_and_a_second_s_worth_at_once() {
        let mut now = Instant::now();
        let (pace, start) = (Pace::new(1000, now), now);
        assert_eq!(pace.take(1000, now), None);
        for _ in 0..100 {
            let wait = pace.take(100, now).unwrap();
            assert!((99..=101).contains(&wait.as_millis()), "{wait:?}");
            now += wait;
        }
        assert!((9.9..10.1).contains(&(now - start).as_secs_f64()));
        assert_eq!(pace.take(1000, now + Duration::from_secs(100)), None);
    }
}
