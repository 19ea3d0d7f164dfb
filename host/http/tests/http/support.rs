//! Servers to send to, a resolver that answers as told, and a guest.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use weir_config::{HttpGrant, Limits};
use weir_http::{
    HttpClient, HttpConfig, HttpError, HttpGuest, HttpSender, RequestBody, Resolve, Resolved, ResponseBody,
    Timeouts,
};
use weir_metrics::Usage;

/// For what must come; nothing waits so long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) type Answer = Response<BoxBody<Bytes, io::Error>>;

/// A server on this machine, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Does this with each connection.
    pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::<AtomicUsize>::default();
        let counted = accepted.clone();
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                served.spawn(serve(stream));
            }
        });
        Self { address, accepted, task }
    }

    /// Answers requests by HTTP.
    pub(crate) async fn new<F>(answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::raw(move |stream| {
            let answer = answer.clone();
            async move {
                let service = service_fn(move |request| {
                    let answer = answer(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }
        })
        .await
    }

    /// Answers each request with its method, URI, `Host` and body.
    pub(crate) async fn echo() -> Self {
        Self::new(|request| async move {
            let (parts, body) = request.into_parts();
            let host = parts.headers.get("host").map(|host| host.to_str().unwrap().to_owned());
            let body = body.collect().await.unwrap().to_bytes();
            let head = format!("{} {} {}\n", parts.method, parts.uri, host.unwrap_or_default());
            text(head.into_bytes().into_iter().chain(body).collect::<Vec<_>>())
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

pub(crate) fn text(text: impl Into<Bytes>) -> Answer {
    Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed())
}

/// Answers with the addresses of a name, one list after the other, the last again and again.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let mut answers: Vec<Vec<_>> =
            answers.iter().map(|list| list.iter().map(|it| it.parse().unwrap()).collect()).collect();
        answers.reverse();
        self.0.lock().unwrap().insert(name.to_owned(), answers);
    }
}

impl Resolve for Names {
    fn resolve(&self, host: &str, port: u16) -> Resolved {
        let mut names = self.0.lock().unwrap();
        // The last stays.
        let found = names.get_mut(host).map(|answers| match &mut **answers {
            [last] => last.clone(),
            _ => answers.pop().unwrap(),
        });
        let found = found.ok_or_else(|| io::Error::other("no such name"));
        Ok(found?.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// A sender and what belongs to it.
pub(crate) struct Bench {
    pub(crate) sender: HttpSender,
    pub(crate) names: Arc<Names>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        let mut config = HttpConfig::default();
        change(&mut config);
        let names = Arc::<Names>::default();
        Self { sender: HttpSender::with_resolver(&config, names.clone(), Arc::new(|_| {})).unwrap(), names }
    }

    pub(crate) fn guest(&self, grants: &[HttpGrant]) -> Guest {
        self.guest_with(grants, |_| ())
    }

    pub(crate) fn guest_with(&self, grants: &[HttpGrant], change: impl FnOnce(&mut Limits)) -> Guest {
        let mut limits = Limits::max();
        change(&mut limits);
        let (usage, worked) = (Arc::<Usage>::default(), Arc::<AtomicU64>::default());
        let said = Arc::<Mutex<Vec<String>>>::default();
        let heard = said.clone();
        let guest = HttpGuest {
            grants: grants.into(),
            usage: usage.clone(),
            worked: worked.clone(),
            say: Box::new(move |text| heard.lock().unwrap().push(text.to_owned())),
        };
        Guest { client: self.sender.client(guest, &limits), usage, worked, said }
    }

    /// Waits until so many connections are open, and so many of them idle.
    pub(crate) async fn connections(&self, open: usize, idle: usize) {
        eventually(|| self.sender.connections() == (open, idle)).await;
    }
}

/// One guest.
pub(crate) struct Guest {
    pub(crate) client: HttpClient,
    pub(crate) usage: Arc<Usage>,
    pub(crate) worked: Arc<AtomicU64>,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
}

impl Guest {
    pub(crate) async fn send(
        &self,
        request: Request<RequestBody>,
        timeouts: Timeouts,
    ) -> Result<Response<ResponseBody>, HttpError> {
        timeout(PATIENCE, self.client.send(request, timeouts)?).await.unwrap()
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Response<ResponseBody>, HttpError> {
        self.send(get(url), Timeouts::default()).await
    }

    /// The whole answer.
    pub(crate) async fn fetch(&self, url: &str) -> Result<(StatusCode, Bytes), HttpError> {
        let answer = self.get(url).await?;
        let status = answer.status();
        Ok((status, whole(answer).await?))
    }
}

pub(crate) async fn whole(answer: Response<ResponseBody>) -> Result<Bytes, HttpError> {
    Ok(timeout(PATIENCE, answer.into_body().collect()).await.unwrap()?.to_bytes())
}

pub(crate) fn get(url: &str) -> Request<RequestBody> {
    with_body(Method::GET, url, Bytes::new())
}

pub(crate) fn with_body(method: Method, url: &str, body: impl Into<Bytes>) -> Request<RequestBody> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    Request::builder().method(method).uri(url).body(body).unwrap()
}

/// Reads, with a body whose guest writes nothing and does not end it.
pub(crate) fn with_no_beginning(url: &str) -> Request<RequestBody> {
    let body = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, _>>());
    Request::get(url).body(BodyExt::boxed_unsync(body)).unwrap()
}

/// Grants reading and writing below a URL.
pub(crate) fn grant(to: &str) -> HttpGrant {
    let mut grant = HttpGrant::new(to.parse().unwrap());
    grant.methods.extend(["POST", "PUT"].map(|method| method.parse().unwrap()));
    grant
}

/// The same, with addresses.
pub(crate) fn grant_at(to: &str, addresses: &[&str]) -> HttpGrant {
    let addresses = addresses.iter().map(|kind| kind.parse().unwrap()).collect();
    HttpGrant { addresses, ..grant(to) }
}

/// Polls until something other threads do has happened.
pub(crate) async fn eventually(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}
