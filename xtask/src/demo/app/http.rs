//! As much of HTTP as a page on this machine needs. Each connection carries one request.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Time to connect, and for each read.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of a message, with its head.
const LENGTH_MAX: u64 = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The origin of the page that asks.
    pub(crate) origin: Option<String>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The type of the content.
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn of(kind: &str, body: Vec<u8>) -> Self {
        Self { status: 200, kind: kind.to_owned(), body }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::of("application/json", value.to_string().into_bytes())
    }

    pub(crate) fn not_found() -> Self {
        Self { status: 404, ..Self::json(&Value::Null) }
    }

    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        let body = serde_json::json!({ "error": { "code": "failed", "message": format!("{error:#}") } });
        Self { status: 503, ..Self::json(&body) }
    }

    pub(crate) fn value(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// Reads a request and answers it.
pub(super) fn respond(stream: TcpStream, answer: &impl Fn(&Request) -> Response) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Message { first, headers, body } = Message::read(&stream)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Response { status, kind, body } =
        answer(&Request { method, path, origin: header(&headers, "origin").map(str::to_owned), body });
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n"
    );
    (&stream).write_all(&[head.as_bytes(), &body].concat())?;
    Ok(())
}

/// Asks a server.
pub(super) fn get(server: SocketAddr, path: &str) -> Result<Response> {
    exchange(server, "GET", path, &[], b"")
}

pub(super) fn post(server: SocketAddr, path: &str, headers: &[&str], body: &Value) -> Result<Response> {
    exchange(server, "POST", path, headers, body.to_string().as_bytes())
}

fn exchange(server: SocketAddr, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Result<Response> {
    let stream = TcpStream::connect_timeout(&server, PATIENCE)
        .with_context(|| format!("cannot connect to `{server}`"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (headers, length) =
        (headers.iter().map(|header| format!("{header}\r\n")).collect::<String>(), body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {server}\r\n{headers}content-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    (&stream).write_all(&[head.as_bytes(), body].concat())?;
    let Message { first, headers, body } = Message::read(&stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("`{server}` answers `{first}`"))?;
    Ok(Response { status, kind: header(&headers, "content-type").unwrap_or_default().to_owned(), body })
}

struct Message {
    first: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    fn read(stream: &TcpStream) -> Result<Self> {
        let mut reader = BufReader::new(stream.take(LENGTH_MAX));
        let mut line = || -> Result<String> {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            ensure!(line.ends_with('\n'), "the head is cut short");
            Ok(line.trim_end().to_owned())
        };
        let (first, mut headers) = (line()?, Vec::new());
        while let Some((name, value)) = line()?.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = header(&headers, "content-length").unwrap_or("0").parse()?;
        ensure!(length <= LENGTH_MAX, "a body of {length} bytes");
        let mut body = Vec::new();
        reader.take(length).read_to_end(&mut body)?;
        Ok(Self { first, headers, body })
    }
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
}
