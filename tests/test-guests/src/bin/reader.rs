//! A hook that reads an answer by raw `wasi:http`, and prints what each step says.
//!
//! `$URL` is fetched. `$HOW` is the function that reads it to its end: `poll`, `blocking-read`, `skip`, `blocking-skip`,
//! `splice` or `blocking-splice`; `drop` waits until something is there to read, and reads nothing of it; `finish` takes
//! no stream. Each prints the bytes and the first error, the error of the next read, and the trailers.

#[cfg(target_family = "wasm")]
#[expect(clippy::print_stdout, reason = "what a hook prints is in the report")]
mod wasm {
    use wasip2::{
        cli::stderr::get_stderr,
        http::{
            outgoing_handler,
            types::{
                Fields, FutureTrailers, IncomingBody, IncomingResponse, OutgoingRequest, Scheme,
                http_error_code,
            },
        },
        io::streams::{InputStream, StreamError},
    };

    pub(super) fn run(url: &str, how: &str) -> Result<(), String> {
        let answer = match fetched(url)? {
            Ok(answer) => answer,
            Err(error) => {
                println!("{error}");
                return Ok(());
            }
        };
        let body = answer.consume().map_err(|()| "the answer has no body")?;
        if how != "finish" {
            let stream = body.stream().map_err(|()| "the body has no stream")?;
            if body.stream().is_ok() {
                return Err("the body has two streams".to_owned());
            }
            let (bytes, end) = read(&stream, how)?;
            println!("{bytes} bytes, then {end}");
            if how != "drop" {
                println!("again {}", said(stream.read(10).map(|bytes| bytes.len() as u64)));
            }
        }
        println!("trailers {}", trailers(&IncomingBody::finish(body)));
        Ok(())
    }

    fn fetched(url: &str) -> Result<Result<IncomingResponse, String>, String> {
        let rest = url.strip_prefix("http://").ok_or("no URL with `http://`")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let request = OutgoingRequest::new(Fields::new());
        let set = request
            .set_scheme(Some(&Scheme::Http))
            .and_then(|()| request.set_authority(Some(authority)))
            .and_then(|()| request.set_path_with_query(Some(path)));
        set.map_err(|()| "the URL is refused")?;
        let answer = match outgoing_handler::handle(request, None) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(format!("{error:?}"))),
        };
        answer.subscribe().block();
        match answer.get() {
            Some(Ok(outcome)) => Ok(outcome.map_err(|error| format!("{error:?}"))),
            other => Err(format!("ready, and then {other:?}")),
        }
    }

    fn read(stream: &InputStream, how: &str) -> Result<(u64, String), String> {
        const SIZE: u64 = 4096;
        let out = get_stderr();
        let mut bytes = 0;
        loop {
            let waited = || stream.subscribe().block();
            let some = match how {
                "poll" => {
                    waited();
                    stream.read(SIZE).map(|bytes| bytes.len() as u64)
                }
                "blocking-read" => stream.blocking_read(SIZE).map(|bytes| bytes.len() as u64),
                "skip" => {
                    waited();
                    stream.skip(SIZE)
                }
                "blocking-skip" => stream.blocking_skip(SIZE),
                "splice" => {
                    waited();
                    out.splice(stream, SIZE)
                }
                "blocking-splice" => out.blocking_splice(stream, SIZE),
                "drop" => {
                    waited();
                    return Ok((0, "dropped".to_owned()));
                }
                _ => return Err(format!("there is no `{how}`")),
            };
            match some {
                Ok(some) => bytes += some,
                failed => return Ok((bytes, said(failed))),
            }
        }
    }

    fn said(outcome: Result<u64, StreamError>) -> String {
        match outcome {
            Ok(bytes) => format!("{bytes} bytes"),
            Err(StreamError::Closed) => "closed".to_owned(),
            Err(StreamError::LastOperationFailed(error)) => match http_error_code(&error) {
                Some(code) => format!("{code:?}"),
                None => format!("an error without a code: {}", error.to_debug_string()),
            },
        }
    }

    fn trailers(trailers: &FutureTrailers) -> String {
        trailers.subscribe().block();
        match trailers.get() {
            Some(Ok(Ok(None))) => "none".to_owned(),
            Some(Ok(Ok(Some(fields)))) => {
                let entries = fields.entries();
                entries
                    .iter()
                    .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)))
                    .collect()
            }
            Some(Ok(Err(error))) => format!("{error:?}"),
            other => format!("ready, and then {:?}", other.map(|it| it.map(drop))),
        }
    }
}

#[cfg(target_family = "wasm")]
fn main() -> std::process::ExitCode {
    let variable = |name| std::env::var(name).unwrap_or_default();
    match wasm::run(&variable("URL"), &variable("HOW")) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
