//! A WebSocket of a client that waits for nothing else, as in RFC 6455.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use anyhow::{Result, ensure};

/// Where both servers have their WebSockets.
pub(crate) const PATH: &str = "/v1/peers/app:bench/rpc";

/// What proves to Main that a client is `app:bench`.
pub(crate) const TOKEN: &str = "weir-bench";

/// The most bytes before a payload from a server.
pub(crate) const HEADER_MAX: usize = 10;

const TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;

pub(crate) fn open(address: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    // Nothing beyond it, which would be a message.
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    let is_open = answer.starts_with(b"HTTP/1.1 101");
    ensure!(is_open, "no WebSocket was opened: {}", String::from_utf8_lossy(&answer));
    Ok(stream)
}

/// Sends a short text, and waits for a message.
pub(crate) fn ask(stream: &mut TcpStream, text: &str) -> Result<String> {
    let length = u8::try_from(text.len())?;
    ensure!(length < 126, "the text is not short");
    // A mask of zeros leaves it as it is.
    let mut frame = vec![TEXT, MASKED | length, 0, 0, 0, 0];
    frame.extend(text.as_bytes());
    stream.write_all(&frame)?;
    let mut header = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        header.extend(byte);
        if let Some(length) = payload(&header) {
            let mut message = vec![0; usize::try_from(length)?];
            stream.read_exact(&mut message)?;
            return Ok(String::from_utf8(message)?);
        }
    }
}

/// The bytes of the payload after this header. None if the header goes on.
pub(crate) fn payload(header: &[u8]) -> Option<u64> {
    match header {
        [_, length @ 0..126] => Some((*length).into()),
        [_, 126, length @ ..] => Some(u16::from_be_bytes(length.try_into().ok()?).into()),
        [_, 127, length @ ..] => Some(u64::from_be_bytes(length.try_into().ok()?)),
        _ => None,
    }
}
