//! Serves HTTP, well and badly. The last part of the path says how.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::stream::unfold;
use test_guests::PATIENT;
use weir_sdk::raw::{config, log, peers, requests};
use wstd::http::{Body, Client, Error, Request, Response, body::Bytes};

/// `wasi:logging`, as a component for another host has it.
mod wasi_logging {
    wit_bindgen::generate!({
        inline: "
            package test:logging;
            world imports { import wasi:logging/logging@0.1.0-draft; }
            package wasi:logging@0.1.0-draft {
                interface logging {
                    enum level { trace, debug, info, warn, error, critical }
                    log: func(level: level, context: string, message: string);
                }
            }
        ",
        generate_all,
    });

    pub(super) use self::wasi::logging::logging::{Level, log};
}

static SERVED: AtomicU32 = AtomicU32::new(0);

#[wstd::http_server]
async fn main(request: Request<Body>) -> Result<Response<Body>, Error> {
    let served = SERVED.fetch_add(1, Ordering::Relaxed) + 1;
    let path = request.uri().path().to_owned();
    let what = path.rsplit('/').next().unwrap_or_default();
    let query = request.uri().query().unwrap_or_default().to_owned();
    match what {
        "echo" => Ok(Response::new(request.into_body())),
        "served" => text(format!("{served}")),
        "headers" => text(
            request
                .headers()
                .iter()
                .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
                .collect(),
        ),
        "uri" => text(format!("{} {}", request.method(), request.uri())),
        "size" => {
            let mut body = request.into_body();
            text(match body.contents().await {
                Ok(bytes) => bytes.len().to_string(),
                Err(error) => format!("{error:?}"),
            })
        }
        "status" => {
            Ok(Response::builder().status(query.parse::<u16>()?).body("as asked".to_owned().into())?)
        }
        "stream" => {
            let pieces: u32 = query.parse()?;
            let piece = |left| async move { (left > 0).then(|| (piece(), left - 1)) };
            Ok(Response::new(Body::from_try_stream(unfold(pieces, piece))))
        }
        "endless" => Ok(Response::new(Body::from_try_stream(unfold((), |()| async { Some((piece(), ())) })))),
        "half" => {
            let piece = |left: u32| async move {
                assert!(left > 0, "in the middle of it");
                Some((piece(), left - 1))
            };
            Ok(Response::new(Body::from_try_stream(unfold(2, piece))))
        }
        "half-exit" => {
            let piece = |left: u32| async move {
                if left == 0 {
                    std::process::exit(0);
                }
                Some((piece(), left - 1))
            };
            Ok(Response::new(Body::from_try_stream(unfold(2, piece))))
        }
        "exit" => std::process::exit(0),
        "call" => text(called(&query)),
        // It asks whoever serves the address that it was asked at, which is itself.
        "itself" => {
            let asked = Client::new().send(Request::get(request.uri()).body(Body::empty())?).await?;
            text(format!("{} from itself", asked.status()))
        }
        // After its answer has begun.
        "late-call" => {
            let pieces = move |number: u32| {
                let query = query.clone();
                async move {
                    if number == 1 {
                        wstd::task::sleep(Duration::from_millis(600).into()).await;
                    }
                    let said = if number == 0 { "first ".to_owned() } else { called(&query) };
                    (number < 2).then(|| (Ok::<_, Infallible>(Bytes::from(said)), number + 1))
                }
            };
            Ok(Response::new(Body::from_try_stream(unfold(0, pieces))))
        }
        // And never hears the reply.
        "send" => {
            let sent = requests::open("echo@1", "echo", None)
                .and_then(|target| requests::send(target, query.as_bytes(), PATIENT));
            text(sent.map_or_else(|error| format!("{error:?}"), |_| "sent".to_owned()))
        }
        "config" => text(config::get(&query).ok().flatten().unwrap_or_default()),
        "name" => text(peers::own_name()),
        "log" => {
            log::write(log::Level::Warn, &query, &[]);
            text(String::new())
        }
        "wasi-log" => {
            wasi_logging::log(wasi_logging::Level::Critical, "till", &query);
            wasi_logging::log(wasi_logging::Level::Debug, "", &"x".repeat(100_000));
            text(String::new())
        }
        "spin" => loop {
            std::hint::black_box(());
        },
        "panic" => panic!("on purpose"),
        "memory" => {
            let mut held: Vec<Vec<u8>> = Vec::new();
            loop {
                held.push(vec![1; 1 << 20]);
            }
        }
        "never" => {
            wstd::task::sleep(Duration::from_secs(3600).into()).await;
            text(String::new())
        }
        "fails" => Err(Error::msg("no answer")),
        _ => text("hello".to_owned()),
    }
}

fn called(payload: &str) -> String {
    let called = requests::open("echo@1", "echo", None)
        .and_then(|target| requests::call(target, payload.as_bytes(), PATIENT));
    called.map_or_else(|error| format!("{error:?}"), |it| String::from_utf8_lossy(&it).into_owned())
}

#[expect(clippy::unnecessary_wraps, reason = "as the handler returns it")]
fn text(text: String) -> Result<Response<Body>, Error> {
    Ok(Response::new(text.into()))
}

/// 64 KiB.
#[expect(clippy::unnecessary_wraps, reason = "as a stream has it")]
fn piece() -> Result<Bytes, Infallible> {
    Ok(Bytes::from_static(&[b'x'; 1 << 16]))
}
