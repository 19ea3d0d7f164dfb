//! Uses the services of Main as often as a request says: `wasi:keyvalue` and `wasi:http`.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod wasm {
    use std::fmt::Display;

    use futures_util::StreamExt as _;
    use keyvalue_guest::draft::wasi::keyvalue::store::{self, Bucket};
    use weir_sdk::{
        Context, Contract, Error, Extension, Operation,
        codec::Bytes,
        wstd::http::{Body, BodyExt as _, Client, Request},
    };

    const CONTRACT: Contract = Contract::new("services@1");
    /// The payload of each is how often, as four bytes, and the name of what is used.
    const GET: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("get");
    const SET: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("set");
    const FETCH: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("fetch");

    /// Bytes of each value and body.
    const SIZE: usize = 1024;

    weir_sdk::manifest! { id: "services", fulfills: &[CONTRACT] }

    pub(super) fn extension() -> Extension<()> {
        Extension::new(MANIFEST, ())
            .on(GET, async |(): &(), _: &Context, what| get(&what))
            .on(SET, async |(): &(), _: &Context, what| set(&what))
            .on(FETCH, async |(): &(), _: &Context, what: Vec<u8>| fetch(&what).await)
    }

    fn get(what: &[u8]) -> Result<Vec<u8>, Error> {
        let (times, bucket) = opened(what)?;
        for number in 0..times {
            let value = bucket.get(&key(number)).map_err(failed)?;
            if value.is_none_or(|value| value.len() != SIZE) {
                return Err(Error::failed("a value is not there"));
            }
        }
        Ok(Vec::new())
    }

    fn set(what: &[u8]) -> Result<Vec<u8>, Error> {
        let (times, bucket) = opened(what)?;
        let value = [b'x'; SIZE];
        for number in 0..times {
            bucket.set(&key(number), &value).map_err(failed)?;
        }
        Ok(Vec::new())
    }

    async fn fetch(what: &[u8]) -> Result<Vec<u8>, Error> {
        let (times, url) = read(what)?;
        let client = Client::new();
        for _ in 0..times {
            let request = Request::get(url).body(Body::empty()).map_err(failed)?;
            let answer = client.send(request).await.map_err(failed)?;
            let mut parts = answer.into_body().into_boxed_body().into_data_stream();
            let mut bytes = 0;
            while let Some(part) = parts.next().await {
                bytes += part.map_err(failed)?.len();
            }
            if bytes != SIZE {
                return Err(Error::failed(format_args!("a body of {bytes} bytes")));
            }
        }
        Ok(Vec::new())
    }

    fn opened(what: &[u8]) -> Result<(u32, Bucket), Error> {
        let (times, name) = read(what)?;
        Ok((times, store::open(name).map_err(failed)?))
    }

    fn read(what: &[u8]) -> Result<(u32, &str), Error> {
        let (times, name) = what.split_first_chunk().ok_or_else(|| Error::invalid_argument("too short"))?;
        Ok((u32::from_le_bytes(*times), str::from_utf8(name).map_err(Error::invalid_argument)?))
    }

    fn key(number: u32) -> String {
        format!("key-{}", number % 1000)
    }

    fn failed(error: impl Display) -> Error {
        Error::failed(error)
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
