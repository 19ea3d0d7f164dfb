//! Serves HTTP: greets whoever asks, but for paths that say how to misbehave.

#[cfg(target_family = "wasm")]
#[wstd::http_server]
async fn main(
    request: wstd::http::Request<wstd::http::Body>,
) -> Result<wstd::http::Response<wstd::http::Body>, wstd::http::Error> {
    match request.uri().path() {
        "/hostile/spin" => loop {
            std::hint::black_box(());
        },
        "/hostile/memory" => {
            let mut held: Vec<Vec<u8>> = Vec::new();
            loop {
                held.push(vec![1; 1 << 20]);
            }
        }
        "/hostile/endless" => {
            let piece = |()| async {
                Some((Ok::<_, std::io::Error>(wstd::http::body::Bytes::from(vec![b'x'; 1 << 16])), ()))
            };
            Ok(wstd::http::Response::new(wstd::http::Body::from_try_stream(futures_util::stream::unfold(
                (),
                piece,
            ))))
        }
        "/hostile/panic" => panic!("on purpose"),
        _ => Ok(wstd::http::Response::new("hello from wasi:http\n".to_owned().into())),
    }
}

#[cfg(not(target_family = "wasm"))]
fn main() {}
