//! Serves HTTP, and uses the interface as it is not meant to be used. The path says how, and the query how often.

#![expect(unsafe_code, clippy::expect_used, reason = "a handle is used twice, and what cannot be traps")]

use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam},
};

struct Server;

wasip2::http::proxy::export!(Server);

impl Guest for Server {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let asked = request.path_with_query().unwrap_or_default();
        let (path, number) = asked.split_once('?').unwrap_or((&asked, ""));
        let number = number.parse().unwrap_or(1_u32);
        match path {
            // The handle is used up by the first answer.
            "/twice" => {
                let handle = out.take_handle();
                // SAFETY: the host does not trust handles.
                let [first, second] = [(); 2].map(|()| unsafe { ResponseOutparam::from_handle(handle) });
                answer(first, Fields::new(), "first");
                ResponseOutparam::set(second, Err(ErrorCode::LoopDetected));
            }
            "/headers" => {
                let fields = Fields::new();
                for number in 0..number {
                    if let Err(error) = fields.append(&format!("x-{number}"), b"value") {
                        return answer(out, Fields::new(), &format!("{number}: {error:?}"));
                    }
                }
                answer(out, fields, "as many as asked");
            }
            // All of them are kept.
            "/fields" => {
                let mut kept = Vec::new();
                for _ in 0..number {
                    let fields = Fields::new();
                    fields.append("x", &[b'x'; 10_000]).expect("it is within the limit");
                    kept.push(fields);
                }
                answer(out, Fields::new(), "as many as asked");
            }
            _ => answer(out, Fields::new(), "hello"),
        }
    }
}

fn answer(out: ResponseOutparam, fields: Fields, text: &str) {
    let response = OutgoingResponse::new(fields);
    let body = response.body().expect("it is taken once");
    ResponseOutparam::set(out, Ok(response));
    let stream = body.write().expect("it is taken once");
    // The client may have left.
    let _broken = stream.blocking_write_and_flush(text.as_bytes());
    drop(stream);
    let _broken = OutgoingBody::finish(body, None);
}

fn main() {}
