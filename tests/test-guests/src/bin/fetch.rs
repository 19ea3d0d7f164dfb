//! An ordinary WASI program that knows nothing of Weir: it fetches the URL in the variable `URL`, and prints the body.

#[cfg(target_family = "wasm")]
fn main() -> Result<(), wstd::http::Error> {
    use wstd::{
        http::{Body, Client, Request},
        io::AsyncWrite as _,
    };

    wstd::runtime::block_on(async {
        let url = std::env::var("URL").unwrap_or_default();
        let mut answer = Client::new().send(Request::get(url).body(Body::empty())?).await?;
        let body = answer.body_mut().contents().await?;
        wstd::io::stdout().write_all(body).await?;
        Ok(())
    })
}

#[cfg(not(target_family = "wasm"))]
fn main() {}
