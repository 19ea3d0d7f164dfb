//! What a request costs of the processor, beside native clients of hyper: on the same thread, and on another one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "for the other tests")]
#[path = "http/support.rs"]
mod support;

use std::{fs, net::SocketAddr, sync::mpsc, thread};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::{
    body::Frame,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, runtime::Builder, sync::oneshot};
use weir_http::{BodyError, ResponseBody, Timeouts};

use self::support::*;

const REQUESTS: u32 = 20_000;

/// Nanoseconds of the processor for the threads of these names.
fn spent(names: &[&str]) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let of = tasks.filter(|path| names.contains(&fs::read_to_string(path.join("comm")).unwrap().trim()));
    let times = of.map(|path| fs::read_to_string(path.join("schedstat")).unwrap());
    times.map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Nanoseconds for each request of a client on a thread of this name, and of the threads that help it.
fn cost<F: Future<Output = ()> + Send + 'static>(helpers: &[&str], work: F) -> u64 {
    let client = move || Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    let before = spent(helpers);
    let (report, reported) = mpsc::channel();
    let (done, end) = mpsc::channel::<()>();
    let run = move || {
        client();
        report.send(()).unwrap();
        // Until its time is read.
        let _end = end.recv();
    };
    let thread = thread::Builder::new().name("client".to_owned()).spawn(run).unwrap();
    reported.recv().unwrap();
    let names: Vec<_> = helpers.iter().copied().chain(["client"]).collect();
    let spent = spent(&names) - before;
    drop(done);
    thread.join().unwrap();
    spent / u64::from(REQUESTS)
}

#[test]
#[ignore = "measures: run it alone on an idle machine, with `--release --nocapture`"]
fn a_get_of_a_kibibyte_beside_hyper() {
    let (started, server) = mpsc::channel();
    thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let server = Server::new(|_| async { text(vec![b'x'; 1024]) }).await;
            started.send(server.address).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let address = server.recv().unwrap();
    let url = format!("http://{address}/");

    for round in 0..3 {
        let native = cost(&[], async move {
            let mut client = Client::new(address).await;
            for _ in 0..REQUESTS {
                client.fetch().await;
            }
        });
        let (orders, mut taken) = tokio::sync::mpsc::channel::<oneshot::Sender<Bytes>>(1);
        let carry_out = async move {
            let mut client = Client::new(address).await;
            while let Some(reply) = taken.recv().await {
                reply.send(client.fetch().await).unwrap();
            }
        };
        let other = move || Builder::new_current_thread().enable_all().build().unwrap().block_on(carry_out);
        let other = thread::Builder::new().name("other".to_owned()).spawn(other).unwrap();
        let until_read = orders.clone();
        let handed_over = cost(&["other"], async move {
            for _ in 0..REQUESTS {
                let (reply, answer) = oneshot::channel();
                orders.send(reply).await.unwrap();
                assert_eq!(answer.await.unwrap().len(), 1024);
            }
        });
        drop(until_read);
        other.join().unwrap();
        let url = url.clone();
        let (bench, grants) = (Bench::new(), [grant(&url)]);
        let guest = bench.guest_with(&grants, |limits| limits.http_rate = 100_000);
        let ours = cost(&["weir-http"], async move {
            for _ in 0..REQUESTS {
                assert_eq!(whole(sent(&guest, &url).await).await.unwrap().len(), 1024);
            }
            // The thread ends with the sender, so that is kept until its time is read.
            drop(guest);
        });
        drop(bench);
        println!("round {round}: hyper {native} ns, on another thread {handed_over} ns, here {ours} ns");
    }
}

/// As guests do it through `wasi:http`: the request goes to a task, and then gets a body, which is empty.
async fn sent(guest: &Guest, url: &str) -> http::Response<ResponseBody> {
    let (parts, mut body) = tokio::sync::mpsc::channel::<Result<_, BodyError>>(2);
    let body = StreamBody::new(stream::poll_fn(move |context| body.poll_recv(context)));
    let request = http::Request::get(url).body(BodyExt::boxed_unsync(body)).unwrap();
    let answer = tokio::spawn(guest.client.send(request, Timeouts::default()).unwrap());
    parts.try_send(Ok(Frame::data(Bytes::new()))).unwrap();
    drop(parts);
    answer.await.unwrap().unwrap()
}

/// A connection of hyper's.
struct Client {
    requests: SendRequest<Empty<Bytes>>,
    address: SocketAddr,
}

impl Client {
    async fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        // It ends with the client.
        let _driver = tokio::spawn(connection);
        Self { requests, address }
    }

    async fn fetch(&mut self) -> Bytes {
        let request = http::Request::get("/").header("host", self.address.to_string());
        let request = request.body(Empty::new()).unwrap();
        self.requests.ready().await.unwrap();
        let answer = self.requests.send_request(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), 1024);
        body
    }
}
