//! One request and its answer, on the sender's thread; and the beginning of its body, before that thread hears of it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING},
    request::Parts,
};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::TrySendError};
use parking_lot::Mutex;
use tokio::{
    sync::mpsc,
    time::{Sleep, sleep, sleep_until, timeout, timeout_at},
};

use crate::{
    body::{CountedBody, RequestBody, response_body},
    client::{Order, Shared, header_size},
    connect::Dialer,
    error::HttpError,
    pool::Connection,
};

/// Does work for a guest, and counts its time. The work is boxed, because it is large and moved several times before
/// it begins.
pub(crate) fn charged<T>(client: Arc<Shared>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let mut work = Box::pin(work);
    poll_fn(move |context| {
        let began = Instant::now();
        let polled = work.as_mut().poll(context);
        client.worked(weir_metrics::nanoseconds(began.elapsed()));
        polled
    })
}

/// A request whose body has begun, ready to be sent.
pub(crate) struct Begun {
    parts: Parts,
    body: RequestBody,
    /// The first frame, if it was taken from the body already.
    first: Option<Frame<Bytes>>,
}

/// Begins a request. If its method only reads, waits until the body begins or ends: guests say only at its end that a
/// body is empty, and servers find an empty body in chunks odd.
pub(crate) async fn begin_body(request: Request<RequestBody>, order: &Order) -> Result<Begun, HttpError> {
    let (mut parts, mut body) = request.into_parts();
    if !is_safe(&parts.method) || body.is_end_stream() {
        return Ok(Begun { parts, body, first: None });
    }
    let begun = async {
        loop {
            match body.frame().await {
                None => return Ok(None),
                Some(Ok(first)) if first.data_ref().is_some_and(Bytes::is_empty) => {}
                Some(Ok(first)) => return Ok(Some(first)),
                Some(Err(_)) => return Err(HttpError::RequestBody),
            }
        }
    };
    let by = Instant::now() + order.first_byte;
    let first = match timeout_at(by.min(order.deadline).into(), begun).await {
        Ok(first) => first?,
        Err(_late) if order.deadline <= by => return Err(order.late()),
        Err(_late) => return Err(HttpError::RequestBody),
    };
    match first {
        None => body = empty(),
        // Without a header that announces the body, hyper would leave it out.
        Some(_) if !parts.headers.contains_key(CONTENT_LENGTH) => {
            parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        Some(_) => {}
    }
    Ok(Begun { parts, body, first })
}

/// Carries out an order, unless its guest gives up or ends.
pub(crate) async fn carry_out(mut order: Order, request: Begun, dialer: Arc<Dialer>) {
    let (mut ended, mut given_up) = (order.ended.clone(), order.reply.take());
    let Some(reply) = &mut given_up else { return };
    let begun = tokio::select! {
        biased;
        _dropped = ended.changed() => return,
        () = reply.closed() => return,
        begun = begin(&order, request, &dialer) => begun,
    };
    let Some(reply) = given_up else { return };
    let (connection, answer) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _given_up = reply.send(Err(error));
            return;
        }
    };
    let (answer, incoming) = answer.into_parts();
    let (frames, body) = response_body();
    let mut passing = Box::pin(pass(incoming, &frames.frames, &order));
    // What has come of the body already goes out with the answer. So a short answer wakes its guest only once.
    let at_once = poll_fn(|context| Poll::Ready(passing.as_mut().poll(context))).await;
    let is_whole = match at_once {
        Poll::Ready(ending) => {
            drop(passing);
            let is_whole = ending.is_ok();
            frames.end(ending);
            reply.send(Ok(Response::from_parts(answer, body))).is_ok() && is_whole
        }
        Poll::Pending => {
            if reply.send(Ok(Response::from_parts(answer, body))).is_err() {
                return;
            }
            let ending = tokio::select! {
                biased;
                _dropped = ended.changed() => return,
                () = frames.frames.closed() => return,
                ending = &mut passing => Some(ending),
                () = over(&order) => None,
            };
            drop(passing);
            match ending {
                Some(ending) => {
                    let is_whole = ending.is_ok();
                    frames.end(ending);
                    is_whole
                }
                None => {
                    frames.cut(order.late());
                    false
                }
            }
        }
    };
    if is_whole {
        keep(connection, &order, &dialer).await;
    }
}

/// Does work until the order's deadline. No timer begins before the work has to wait.
async fn until<T>(order: &Order, work: impl Future<Output = Result<T, HttpError>>) -> Result<T, HttpError> {
    tokio::select! {
        biased;
        done = work => done,
        () = over(order) => Err(order.late()),
    }
}

fn over(order: &Order) -> Sleep {
    sleep_until(order.deadline.into())
}

/// Waits as long as the guest's rate asks for, if at all, and at most until the order's deadline.
async fn pause(wait: Option<Duration>, order: &Order) -> Result<(), HttpError> {
    let Some(wait) = wait else { return Ok(()) };
    let pause = async {
        sleep(wait).await;
        Ok(())
    };
    until(order, pause).await
}

/// Sends the request, and waits until its answer begins.
async fn begin(
    order: &Order,
    request: Begun,
    dialer: &Dialer,
) -> Result<(Connection, Response<Incoming>), HttpError> {
    let client = &order.client;
    pause(client.begin(Instant::now()), order).await?;
    let Begun { parts, body, first } = request;
    let parts = as_sent(parts, order)?;
    pause(client.sent(header_size(&parts.headers), Instant::now()), order).await?;
    let may_repeat = is_safe(&parts.method) && body.is_end_stream();
    let progress = Arc::new(Mutex::new(Instant::now()));
    let (mut parts, mut body) = (Some(parts), Some((body, first)));
    let (mut unsent, mut is_repeated) = (None, false);
    loop {
        let kept = match is_repeated {
            true => None,
            false => dialer.pool.take(client.id, &order.route),
        };
        let again = kept.as_ref().filter(|_| may_repeat).and_then(|_| parts.clone());
        let is_kept = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            // Boxed, because this future is far larger than what most requests need.
            None => until(order, Box::pin(dialer.connect(order))).await?,
        };
        *progress.lock() = Instant::now();
        let request = match (unsent.take(), parts.take()) {
            (Some(request), _) => request,
            (None, Some(parts)) => {
                let (body, first) = body.take().unwrap_or_else(|| (empty(), None));
                Request::from_parts(parts, CountedBody::new(body, first, order, progress.clone()))
            }
            (None, None) => return Err(HttpError::ConnectionTerminated),
        };
        let sent = connection.requests.try_send_request(request);
        match first_byte(sent, connection.late.as_mut(), &progress, order).await? {
            Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(HttpError::Upgraded);
            }
            Ok(answer) => {
                pause(client.received(header_size(answer.headers()), Instant::now()), order).await?;
                return Ok((connection, answer));
            }
            // The server has closed a kept connection before the request went out, or as it did.
            Err(mut error) => match error.take_message() {
                Some(request) if is_kept => unsent = Some(request),
                _ if again.is_some() && has_ended(error.error()) => (parts, is_repeated) = (again, true),
                _ => return Err(error.into_error().into()),
            },
        }
    }
}

/// Whether a request of this method can be repeated without effect (RFC 9110, section 9.2.1).
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether the connection ended before the head of an answer was whole.
fn has_ended(error: &hyper::Error) -> bool {
    matches!(HttpError::from_hyper(error), HttpError::ConnectionTerminated | HttpError::ResponseIncomplete)
}

fn empty() -> RequestBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The request as the server gets it: without scheme and host, which `Host` has in one notation.
fn as_sent(mut parts: Parts, order: &Order) -> Result<Parts, HttpError> {
    let wrong = |error: http::Error| HttpError::Uri(error.to_string());
    let path = parts.uri.path_and_query().cloned();
    let mut uri = Uri::builder();
    uri = match path {
        Some(path) if path.as_str().starts_with('/') => uri.path_and_query(path),
        Some(path) => uri.path_and_query(format!("/{path}")),
        None => uri.path_and_query("/"),
    };
    parts.uri = uri.build().map_err(wrong)?;
    parts.version = Version::HTTP_11;
    let host = HeaderValue::try_from(order.route.place.authority());
    parts.headers.insert(HOST, host.map_err(|error| wrong(error.into()))?);
    Ok(parts)
}

type Sent = Result<Response<Incoming>, TrySendError<Request<CountedBody>>>;

/// Waits for the answer, for as long as allowed after the last part of the request.
///
/// The timer belongs to the connection, and may be set for an earlier request: if it ends too early, it is set anew. A
/// timer for each request would wake the thread from the wait that follows.
async fn first_byte(
    answer: impl Future<Output = Sent>,
    mut late: Pin<&mut Sleep>,
    progress: &Mutex<Instant>,
    order: &Order,
) -> Result<Sent, HttpError> {
    let mut answer = pin!(answer);
    let end = || order.deadline.min(*progress.lock() + order.first_byte);
    if late.is_elapsed() || late.deadline() > end().into() {
        late.as_mut().reset(end().into());
    }
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            () = late.as_mut() => {
                let end = end();
                if end <= Instant::now() {
                    return Err(if end == order.deadline { order.late() } else { HttpError::ResponseTimeout });
                }
                late.as_mut().reset(end.into());
            }
        }
    }
}

/// Passes an answer's body on, until its end.
async fn pass(
    mut incoming: Incoming,
    frames: &mpsc::Sender<Frame<Bytes>>,
    order: &Order,
) -> Result<(), HttpError> {
    loop {
        if incoming.is_end_stream() {
            return Ok(());
        }
        let frame = match timeout(order.between_bytes, incoming.frame()).await {
            Ok(Some(frame)) => frame.map_err(|error| HttpError::in_body(&error))?,
            Ok(None) => return Ok(()),
            Err(_late) => return Err(HttpError::ResponseTimeout),
        };
        let bytes = frame
            .data_ref()
            .map_or_else(|| frame.trailers_ref().map_or(0, header_size), |data| data.len() as u64);
        // This fails if the guest has given up.
        frames.send(frame).await.map_err(|_| HttpError::ConnectionTerminated)?;
        if let Some(wait) = order.client.received(bytes, Instant::now()) {
            sleep(wait).await;
        }
    }
}

/// Keeps the connection for the guest's next request, once the server has taken all of this one.
async fn keep(mut connection: Connection, order: &Order, dialer: &Dialer) {
    let mut ended = order.ended.clone();
    let is_ready = tokio::select! {
        biased;
        _dropped = ended.changed() => return,
        () = over(order) => return,
        ready = timeout(order.between_bytes, connection.requests.ready()) => matches!(ready, Ok(Ok(()))),
    };
    if is_ready {
        dialer.pool.put(order.client.id, order.route.place.clone(), connection);
    }
}
