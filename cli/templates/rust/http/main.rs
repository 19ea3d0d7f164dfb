//! An HTTP server: each request has a new instance of it.

use {{crate}}::respond;
use wstd::http::{Body, Error, Request, Response};

#[wstd::http_server]
async fn main(request: Request<Body>) -> Result<Response<Body>, Error> {
    Ok(respond(request.method(), request.uri().path()).map(Body::from))
}
