//! A connection that subscribes, in one of two ways.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    str::FromStr,
};

use anyhow::{Result, bail, ensure};

use crate::websocket::{self, HEADER_MAX, TOKEN};

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"pattern":"packets"}}"#;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    WebSocket,
    Stream,
}

/// Tells the frames of a connection apart.
#[derive(Debug)]
pub(crate) struct Frames {
    way: Way,
    /// The header of the next frame, as far as it has come.
    header: [u8; HEADER_MAX],
    len: usize,
    /// Bytes of the payload that have not come.
    left: u64,
}

impl FromStr for Way {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "websocket" => Ok(Self::WebSocket),
            "stream" => Ok(Self::Stream),
            _ => bail!("`{word}` is neither `websocket` nor `stream`"),
        }
    }
}

impl Way {
    pub(crate) fn subscribe(self, address: &str) -> Result<TcpStream> {
        match self {
            Self::WebSocket => {
                let mut stream = websocket::open(address)?;
                let answer = websocket::ask(&mut stream, SUBSCRIBE)?;
                ensure!(answer.contains("packets"), "a subscription is answered {answer}");
                Ok(stream)
            }
            Self::Stream => {
                let mut stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                let opening = format!("app:bench {TOKEN} subscribe packets length\n");
                stream.write_all(opening.as_bytes())?;
                let mut answer = String::new();
                // No packet comes before all are there, so nothing is left in the reader.
                BufReader::new(&stream).read_line(&mut answer)?;
                ensure!(answer == "ok\n", "a subscription is answered {answer}");
                Ok(stream)
            }
        }
    }

    /// The bytes of the payload after this header. None if the header goes on.
    fn payload(self, header: &[u8]) -> Option<u64> {
        match self {
            Self::WebSocket => websocket::payload(header),
            Self::Stream => Some(u32::from_le_bytes(header.try_into().ok()?).into()),
        }
    }
}

impl Frames {
    pub(crate) fn new(way: Way) -> Self {
        Self { way, header: [0; HEADER_MAX], len: 0, left: 0 }
    }

    /// Takes what has come. Calls `begun` with the payload's size at the beginning of each frame, and `ended` at its
    /// end.
    pub(crate) fn take(&mut self, mut input: &[u8], mut begun: impl FnMut(u64), mut ended: impl FnMut()) {
        loop {
            if self.left > 0 {
                let here = self.left.min(u64::try_from(input.len()).unwrap_or(u64::MAX));
                self.left -= here;
                input = usize::try_from(here).ok().and_then(|here| input.get(here..)).unwrap_or_default();
                if self.left == 0 {
                    ended();
                }
            }
            let Some((byte, rest)) = input.split_first() else { return };
            input = rest;
            if let Some(place) = self.header.get_mut(self.len) {
                (*place, self.len) = (*byte, self.len + 1);
            }
            if let Some(payload) = self.header.get(..self.len).and_then(|header| self.way.payload(header)) {
                (self.left, self.len) = (payload, 0);
                begun(payload);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(way: Way, pieces: &[&[u8]]) -> (Vec<u64>, usize) {
        let (mut frames, mut begun, mut ended) = (Frames::new(way), Vec::new(), 0);
        for piece in pieces {
            frames.take(piece, |payload| begun.push(payload), || ended += 1);
        }
        (begun, ended)
    }

    #[test]
    fn frames_are_told_apart_in_whatever_pieces_they_come() {
        let stream = [&[3, 0, 0, 0][..], b"abc", &[1, 0, 0, 0], b"d"].concat();
        let short = [&[0x81, 3][..], b"abc", &[0x81, 126, 0, 200], &[b'x'; 200]].concat();
        for (way, input, payloads) in [(Way::Stream, stream, [3, 1]), (Way::WebSocket, short, [3, 200])] {
            let bytes: Vec<_> = input.chunks(1).collect();
            for pieces in [vec![&*input], bytes] {
                assert_eq!(frames(way, &pieces), (payloads.to_vec(), 2), "{way:?}");
            }
            assert_eq!(frames(way, &[&input[..input.len() - 1]]).1, 1);
        }
    }
}
