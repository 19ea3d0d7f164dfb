//! Subscribers at the gateway, by WebSocket or by plain stream: many that read and count, and one that does not read.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
};

use super::{
    Answering,
    apps::{TOKEN, ask, open},
    line, now,
};

/// Without a packet for so long, something is lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// When a stalled subscriber begins to read and gets nothing more for so long, all else is lost.
const AT_REST: Duration = Duration::from_millis(300);

/// The most bytes of one read.
const READ: usize = 64 * 1024;

/// The most bytes before a payload from a server.
const HEADER_MAX: usize = 10;

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"pattern":"packets"}}"#;

#[derive(Debug)]
struct Reader {
    stream: TcpStream,
    frames: Frames,
    /// Packets of this round that have come.
    came: usize,
}

pub(super) fn read(way: Way, address: &str, subscribers: u32) -> Result<Answering> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut readers = Vec::new();
    for number in 0..subscribers {
        let stream = way.subscribe(address)?;
        stream.set_nonblocking(true)?;
        epoll::add(&epoll, &stream, EventData::new_u64(number.into()), EventFlags::IN)?;
        readers.push(Reader { stream, frames: Frames::new(way), came: 0 });
    }
    let mut input = vec![0; READ];
    let mut events = Vec::with_capacity(readers.len());
    Ok(Box::new(move |asked| {
        let (count, bytes) = asked.split_once(' ').context("two numbers are needed")?;
        let mut round = Round::new(count.parse()?, bytes.parse()?, readers.len());
        let mut end = Instant::now() + PATIENCE;
        while !round.is_over() {
            events.clear();
            let patience = Timespec::try_from(PATIENCE)?;
            epoll::wait(&epoll, spare_capacity(&mut events), Some(&patience))?;
            for event in &events {
                let reader =
                    usize::try_from(event.data.u64()).ok().and_then(|number| readers.get_mut(number));
                reader.context("an event of no reader")?.read(&mut input, &mut round)?;
                end = Instant::now() + PATIENCE;
            }
            ensure!(
                Instant::now() < end,
                "{} of {} packets have come to all",
                round.times.len(),
                round.count
            );
        }
        for reader in &mut readers {
            reader.came = 0;
        }
        Ok(line(&round.times))
    }))
}

pub(super) fn stall(way: Way, address: &str) -> Result<Answering> {
    let mut stream = way.subscribe(address)?;
    stream.set_read_timeout(Some(AT_REST))?;
    let mut input = vec![0; READ];
    Ok(Box::new(move |_| {
        let mut bytes = 0;
        loop {
            match stream.read(&mut input) {
                Ok(0) => bail!("the subscriber was sent away"),
                Ok(read) => bytes += read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(bytes.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }))
}

impl Reader {
    fn read(&mut self, input: &mut [u8], round: &mut Round) -> Result<()> {
        let read = match self.stream.read(input) {
            Ok(0) => bail!("a subscriber was sent away"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (mut is_short, bytes, came) = (false, round.bytes, &mut self.came);
        let input = input.get(..read).unwrap_or_default();
        self.frames.take(
            input,
            |payload| is_short |= payload < bytes,
            || {
                round.came(*came);
                *came += 1;
            },
        );
        ensure!(!is_short, "something else than a packet has come");
        Ok(())
    }
}

/// Packets, and to how many subscribers each has come.
#[derive(Debug)]
struct Round {
    count: usize,
    bytes: u64,
    subscribers: usize,
    came: Vec<usize>,
    times: Vec<u64>,
}

impl Round {
    fn new(count: usize, bytes: u64, subscribers: usize) -> Self {
        Self { count, bytes, subscribers, came: vec![0; count], times: Vec::with_capacity(count) }
    }

    fn is_over(&self) -> bool {
        self.times.len() >= self.count
    }

    /// Counts another subscriber that has the packet. Once all have it, notes the time. Packets come to all in order.
    fn came(&mut self, packet: usize) {
        if let Some(came) = self.came.get_mut(packet) {
            *came += 1;
            if *came == self.subscribers {
                self.times.push(now());
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    WebSocket,
    Stream,
}

/// Tells the frames of a connection apart.
#[derive(Debug)]
struct Frames {
    way: Way,
    /// The header of the next frame, as far as it has come.
    header: [u8; HEADER_MAX],
    /// Bytes of that header that have come.
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
    fn subscribe(self, address: &str) -> Result<TcpStream> {
        match self {
            Self::WebSocket => {
                let mut socket = open(address)?;
                let answer = ask(&mut socket, SUBSCRIBE)?;
                ensure!(answer.contains("packets"), "a subscription is answered {answer}");
                // No packet comes before all are there, so nothing is left in the WebSocket.
                Ok(socket.get_ref().try_clone()?)
            }
            Self::Stream => {
                let mut stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                let opening = format!("app:bench {TOKEN} subscribe packets length\n");
                stream.write_all(opening.as_bytes())?;
                let mut answer = String::new();
                BufReader::new(&stream).read_line(&mut answer)?;
                ensure!(answer == "ok\n", "a subscription is answered {answer}");
                Ok(stream)
            }
        }
    }

    /// The number of bytes of the payload after this header. `None` if the header goes on.
    fn payload(self, header: &[u8]) -> Option<u64> {
        match self {
            Self::WebSocket => match header {
                [_, length @ 0..126] => Some((*length).into()),
                [_, 126, length @ ..] => Some(u16::from_be_bytes(length.try_into().ok()?).into()),
                [_, 127, length @ ..] => Some(u64::from_be_bytes(length.try_into().ok()?)),
                _ => None,
            },
            Self::Stream => Some(u32::from_le_bytes(header.try_into().ok()?).into()),
        }
    }
}

impl Frames {
    fn new(way: Way) -> Self {
        Self { way, header: [0; HEADER_MAX], len: 0, left: 0 }
    }

    /// Takes what has come. Calls `begun` with the payload's size at the beginning of each frame, and `ended` at its
    /// end.
    fn take(&mut self, mut input: &[u8], mut begun: impl FnMut(u64), mut ended: impl FnMut()) {
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
