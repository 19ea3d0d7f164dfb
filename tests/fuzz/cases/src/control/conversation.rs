//! A conversation between one client and Main.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{Step, answer::whole_answer};
use crate::stage::Stage;

/// Time to listen for the rest of an answer: streams have no end.
const LISTENING: Duration = Duration::from_millis(30);

/// A client, with the open connection of its last request.
pub(super) struct Conversation {
    socket: PathBuf,
    connection: Option<UnixStream>,
}

impl Conversation {
    pub(super) fn with(stage: &Stage) -> Self {
        Self { socket: stage.dir.path().join("weir.sock"), connection: None }
    }

    pub(super) fn hold(&mut self, steps: &[Step<'_>]) {
        for step in steps {
            match step {
                Step::Ask(request) => {
                    let has_body = request.is_answered_with_a_body();
                    let heard = self.ask(&request.bytes(), has_body, LISTENING);
                    if !request.has_a_certain_end() {
                        self.connection = None;
                    } else if let Some(length) = whole_answer(&heard, has_body) {
                        assert_eq!(length, heard.len(), "more than one answer: {}", heard.escape_ascii());
                    }
                }
                Step::Send(bytes) => self.send(bytes),
            }
        }
    }

    /// Sends a request and returns the answer, up to `within` from now. Gives up the connection if the answer
    /// is incomplete.
    pub(super) fn ask(&mut self, request: &[u8], has_body: bool, within: Duration) -> Vec<u8> {
        let Some(mut stream) = self.connect() else { return Vec::new() };
        // Fails if Main has closed the connection. Main may have said so in an answer.
        let _closed = stream.write_all(request);
        let mut heard = Vec::new();
        let is_open =
            listen(&mut stream, &mut heard, within, |heard| whole_answer(heard, has_body).is_some());
        if is_open && whole_answer(&heard, has_body).is_some() {
            self.connection = Some(stream);
        }
        heard
    }

    fn send(&mut self, bytes: &[u8]) {
        let Some(mut stream) = self.connect() else { return };
        let _closed = stream.write_all(bytes);
        let _closed = stream.shutdown(Shutdown::Write);
        let mut heard = Vec::new();
        listen(&mut stream, &mut heard, LISTENING, |_| false);
        // Only a parser like Main's could tell which answers have no body.
        let without_body = |method: &[u8]| bytes.windows(method.len()).any(|window| window == method);
        if !without_body(b"HEAD") && !without_body(b"CONNECT") {
            let mut rest = &heard[..];
            while let Some(length) = whole_answer(rest, true) {
                rest = &rest[length..];
            }
        }
    }

    /// None if Main has ended, which an earlier request may have asked for.
    fn connect(&mut self) -> Option<UnixStream> {
        self.connection.take().or_else(|| UnixStream::connect(&self.socket).ok())
    }
}

/// Reads until there is enough, there is no more, or the time is up. Returns whether there may be more.
fn listen(
    stream: &mut UnixStream,
    heard: &mut Vec<u8>,
    within: Duration,
    is_enough: impl Fn(&[u8]) -> bool,
) -> bool {
    let end = Instant::now() + within;
    let mut piece = [0; 16 * 1024];
    while !is_enough(heard) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return true;
        }
        match stream.read(&mut piece) {
            Ok(0) => return false,
            Ok(length) => heard.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}
