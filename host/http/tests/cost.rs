//! What a request costs of the processor, beside a native client of hyper.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "for the other tests")]
#[path = "http/support.rs"]
mod support;

use std::{fs, sync::mpsc, thread};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, runtime::Builder};

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
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            let driver = tokio::spawn(connection);
            for _ in 0..REQUESTS {
                let request = http::Request::get("/").header("host", address.to_string());
                let request = request.body(Empty::<Bytes>::new()).unwrap();
                requests.ready().await.unwrap();
                let answer = requests.send_request(request).await.unwrap();
                assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 1024);
            }
            driver.abort();
        });
        let url = url.clone();
        let (bench, grants) = (Bench::new(), [grant(&url)]);
        let guest = bench.guest_with(&grants, |limits| limits.http_rate = 100_000);
        let ours = cost(&["weir-http"], async move {
            for _ in 0..REQUESTS {
                assert_eq!(guest.fetch(&url).await.unwrap().1.len(), 1024);
            }
            // The thread ends with the sender, so that is kept until its time is read.
            drop(guest);
        });
        drop(bench);
        let ratio = f64::from(u32::try_from(ours).unwrap()) / f64::from(u32::try_from(native).unwrap());
        println!("round {round}: hyper {native} ns, here {ours} ns, {ratio:.2} times");
    }
}
