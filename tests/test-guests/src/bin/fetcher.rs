//! Sends requests by HTTP with `wstd`, on the SDK. It serves one operation, `run`: the payload is a command line, the
//! answer its result.
//!
//! | command | result |
//! | --- | --- |
//! | `get URL` | the status and the body |
//! | `size URL` | the number of bytes in the body, which is not kept |
//! | `post URL N` | the same as `get`, for a request with a body of `N` bytes |
//! | `hold URL N` | how many of `N` answers come; their bodies are kept and not read |
//! | `drop` | forgets them |
//! | `many URL N` | the same as `hold`, for requests at the same time whose bodies are read |
//! | `header URL N` | the same as `get`, for a request with a header of `N` bytes |
//! | `with NAME VALUE URL` | the same as `get`, for a request with this header |

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod wasm {
    use std::{cell::RefCell, fmt::Debug};

    use weir_sdk::{
        Context, Contract, Error, Extension, Operation,
        codec::Bytes,
        wstd::http::{Body, BodyExt as _, Client, Request, Response},
    };

    use test_guests::words::{number, word};

    const CONTRACT: Contract = Contract::new("fetcher@1");
    const RUN: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("run");

    weir_sdk::manifest! { id: "fetcher", fulfills: &[CONTRACT] }

    pub(super) fn extension() -> Extension<impl Sized + 'static> {
        Extension::new(MANIFEST, RefCell::default()).on(RUN, run)
    }

    async fn run(held: &RefCell<Vec<Response<Body>>>, _: &Context, line: Vec<u8>) -> Result<Vec<u8>, Error> {
        let line = String::from_utf8_lossy(&line);
        let (command, rest) = word(&line);
        let outcome = match command {
            "get" => whole(Request::get(rest).body(Body::empty())).await,
            "size" => size(rest).await,
            "post" => {
                let (url, bytes) = word(rest);
                let body = "x".repeat(usize::try_from(number(bytes).unwrap_or_default()).unwrap_or_default());
                whole(Request::post(url).body(body.into())).await
            }
            "hold" => {
                let (url, count) = word(rest);
                let mut came = 0;
                for _ in 0..number(count).unwrap_or_default() {
                    if let Ok(answer) = sent(Request::get(url).body(Body::empty())).await {
                        held.borrow_mut().push(answer);
                        came += 1;
                    }
                }
                Ok(came.to_string())
            }
            "drop" => {
                held.take();
                Ok(String::new())
            }
            "many" => {
                let (url, count) = word(rest);
                let count = number(count).unwrap_or_default();
                let all = (0..count).map(|_| whole(Request::get(url).body(Body::empty())));
                let came = futures_util::future::join_all(all).await;
                Ok(came.iter().filter(|outcome| outcome.is_ok()).count().to_string())
            }
            "with" => {
                let (name, rest) = word(rest);
                let (value, url) = word(rest);
                whole(Request::get(url).header(name, value).body(Body::empty())).await
            }
            "header" => {
                let (url, bytes) = word(rest);
                let long = "x".repeat(usize::try_from(number(bytes).unwrap_or_default()).unwrap_or_default());
                whole(Request::get(url).header("x-long", long).body(Body::empty())).await
            }
            _ => Err(format!("unknown command `{command}`")),
        };
        outcome.map(String::into_bytes).map_err(|error| Error::handler("refused", error))
    }

    async fn sent<E: Debug>(request: Result<Request<Body>, E>) -> Result<Response<Body>, String> {
        let request = request.map_err(|error| format!("{error:?}"))?;
        Client::new().send(request).await.map_err(|error| format!("{error:?}"))
    }

    async fn whole<E: Debug>(request: Result<Request<Body>, E>) -> Result<String, String> {
        let mut answer = sent(request).await?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().contents().await.map_err(|error| format!("{error:?}"))?;
        Ok(format!("{status} {}", String::from_utf8_lossy(body)))
    }

    async fn size(url: &str) -> Result<String, String> {
        use futures_util::StreamExt as _;

        let answer = sent(Request::get(url).body(Body::empty())).await?;
        let mut parts = answer.into_body().into_boxed_body().into_data_stream();
        let mut bytes = 0;
        while let Some(part) = parts.next().await {
            bytes += part.map_err(|error| format!("{error:?} after {bytes} bytes"))?.len();
        }
        Ok(bytes.to_string())
    }
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    wasm::extension().run()
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
