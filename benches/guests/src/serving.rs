//! Serves HTTP: greets whoever asks.

#[cfg(target_family = "wasm")]
#[wstd::http_server]
async fn main(
    _request: wstd::http::Request<wstd::http::Body>,
) -> Result<wstd::http::Response<wstd::http::Body>, wstd::http::Error> {
    Ok(wstd::http::Response::new("hello from wasi:http\n".to_owned().into()))
}

#[cfg(not(target_family = "wasm"))]
fn main() {}
