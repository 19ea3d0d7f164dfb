//! Plain streams: one line says which peer it is and what it wants, then come the frames of one topic or queue.

mod frames;

use std::{future::poll_fn, io, sync::Arc, time::Duration};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use weir_connection::{LINGER, Place, Rate};
use weir_host::{
    Error,
    client::Queue,
    names::harmless,
    peers::{PeerError, Proof, Session, SessionEnd},
};

use self::frames::{FrameError, Frames};
use crate::{
    hub::Form,
    outbox::{Body, Next, Outbox},
    rpc::SAID_MAX,
    shared::{Ending, Shared},
    stream::{Io, Stream},
};

/// Time for the first line.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of the first line, with its newline.
const LINE_MAX: usize = 1024;

/// Bytes to make room for before a read.
const READ: usize = 8 * 1024;

/// From this size on, in bytes, a payload is written from its own memory instead of being copied to other frames.
const LARGE: usize = 4 * 1024;

/// Frames are written once this many bytes of them are collected, after a large payload, or when no more wait.
const PIECE: usize = 64 * 1024;

/// Why a stream ends, in a word and a text for the client. `None` if the client has gone, or reads frames: an error
/// line would look like one of them.
type End = Option<(String, String)>;

/// What the first line says.
#[derive(Debug, PartialEq, Eq)]
struct Opening<'l> {
    name: &'l str,
    /// `None` for `-`: then the user of the client's process proves the name.
    token: Option<&'l str>,
    verb: Verb,
    target: &'l str,
    frames: Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Subscribe,
    Publish,
    Put,
}

/// Serves a stream to its end.
pub(crate) async fn converse(shared: &Shared, stream: Stream, place: Place) {
    let Stream { mut io, uid, .. } = stream;
    if let Err(Some((word, text))) = talk(shared, &mut io, uid, place).await {
        // The text may repeat bytes of the client, so it is made harmless and cut.
        let line = format!("error {word} {}\n", harmless(&text, SAID_MAX));
        // The client may have gone, or not read.
        let _gone = timeout(LINGER, io.write_all(line.as_bytes())).await;
    }
    let _gone = timeout(LINGER, io.shutdown()).await;
}

async fn talk(shared: &Shared, io: &mut Box<dyn Io>, uid: Option<u32>, mut place: Place) -> Result<(), End> {
    let mut input = BytesMut::new();
    let refused = |word: &'static str, text: String| {
        shared.part.refused(word, || format!("a plain stream: {text}"));
        end(word, text)
    };
    let line = tokio::select! {
        biased;
        line = timeout(PATIENCE, first_line(io, &mut input)) => line,
        () = place.taken() => {
            return Err(refused("busy", "too many connections have not said what they are".to_owned()));
        }
        why = shared.ending() => return Err(of_gateway(why)),
    };
    let line = line.unwrap_or_else(|_elapsed| Err(end("protocol", "no line came within 5 s")));
    let line = line.map_err(|why| why.and_then(|(_, text)| refused("protocol", text)))?;
    let opening = Opening::parse(&line).map_err(|fault| refused("protocol", fault.to_owned()))?;
    let proof = match (opening.token, uid) {
        (Some(token), _) => Some(Proof::Token(token)),
        (None, uid) => uid.map(Proof::Uid),
    };
    let proof = proof.ok_or_else(|| {
        shared.part.refused("no-proof", || format!("a plain stream: {}", PeerError::Denied));
        end("denied", PeerError::Denied)
    })?;
    let session = shared.peers.admit(opening.name, proof).map_err(|error| match error {
        PeerError::TooMany { .. } => refused("busy", error.to_string()),
        PeerError::Stopping => end("stopping", error),
        _ => {
            // The registry of names logs the refusal.
            shared.part.count_refused("proof");
            end("denied", error)
        }
    })?;
    drop(place);
    let mut ended = std::pin::pin!(session.ended());
    let work = async {
        match opening.verb {
            Verb::Subscribe => subscribe(shared, &session, io, opening.target, opening.frames).await,
            verb => take_in(&session, io, input, &opening, verb).await,
        }
    };
    tokio::select! {
        done = work => done,
        why = &mut ended => Err(of_session(why).filter(|_| opening.verb != Verb::Subscribe)),
        why = shared.ending() => Err(of_gateway(why).filter(|_| opening.verb != Verb::Subscribe)),
    }
}

/// Sends the events of a topic.
async fn subscribe(
    shared: &Shared,
    session: &Session,
    io: &mut Box<dyn Io>,
    topic: &str,
    frames: Frames,
) -> Result<(), End> {
    if let Err(error) = topic.parse::<weir_host::names::Topic>() {
        return Err(end("invalid", error));
    }
    let outbox = shared.outbox(session);
    let joined = Joined { shared, session, outbox: &outbox };
    shared.hub.join(session, &outbox, topic, Form::Raw).map_err(of)?;
    io.write_all(b"ok\n").await.map_err(gone)?;
    let stall = session.limits().stall_timeout;
    let (mut piece, mut ignored) = (BytesMut::new(), [0; 256]);
    loop {
        tokio::select! {
            // There may always be an event that waits, so events come last.
            biased;
            () = session.regranted() => {
                session.may_subscribe(topic).map_err(|_| None)?;
                continue;
            }
            read = io.read(&mut ignored) => match read {
                Ok(0) | Err(_) => break,
                Ok(_) => continue,
            },
            () = poll_fn(|context| outbox.poll_ready(context)) => {}
        }
        if outbox.is_overrun() {
            return Err(None);
        }
        let (mut sent, mut lost) = (0, outbox.take_uncounted());
        let mut large = None;
        while piece.len() < PIECE
            && large.is_none()
            && let Some(Next { body: Body::Raw(payload), .. }) = outbox.next()
        {
            let is_large = payload.len() >= LARGE;
            let can_be =
                if is_large { frames.open(&mut piece, &payload) } else { frames.write(&mut piece, &payload) };
            match can_be {
                true => sent += 1,
                false => lost += 1,
            }
            large = Some(payload).filter(|_| is_large && can_be);
        }
        session.count_events(sent, lost);
        let end = if large.is_some() { frames.end() } else { b"" };
        let mut written = (&mut piece).chain(large.unwrap_or_default()).chain(end);
        while written.has_remaining() {
            // The time begins anew with each write, so a client that reads slowly but goes on reading keeps its stream.
            match timeout(stall, io.write_buf(&mut written)).await {
                Ok(Ok(1..)) => {}
                _ => return Err(None),
            }
        }
        piece.clear();
        if piece.capacity() > PIECE {
            piece = BytesMut::new();
        }
    }
    drop(joined);
    Ok(())
}

/// Publishes frames, or puts them into a queue, until the input ends.
async fn take_in(
    session: &Session,
    io: &mut Box<dyn Io>,
    mut input: BytesMut,
    opening: &Opening<'_>,
    verb: Verb,
) -> Result<(), End> {
    let client = session.client();
    let into: Into = match verb {
        Verb::Put => {
            let queue = client.queue(opening.target).map_err(of)?;
            queue.may_put().map_err(of)?;
            Into::Queue(queue)
        }
        _ => {
            session.may_publish(opening.target).map_err(of)?;
            Into::Topic(opening.target)
        }
    };
    io.write_all(b"ok\n").await.map_err(gone)?;
    let limits = session.limits();
    let max = usize::try_from(limits.message_size).unwrap_or(usize::MAX);
    let mut rate = Rate::new(limits.message_rate);
    let (mut done, mut searched, mut is_over) = (0u64, 0, false);
    loop {
        let failed = |word: &str, text: String| end(word, format!("frame {}: {text}", done + 1));
        let frame = match opening.frames.next(&mut input, &mut searched, max, is_over) {
            Ok(frame) => frame,
            Err(FrameError::TooLarge) => {
                return Err(failed("too-large", format!("over {max} bytes, which is `limits.message-size`")));
            }
            Err(FrameError::CutOff) => {
                return Err(failed("protocol", "the input ended within it".to_owned()));
            }
        };
        let Some(frame) = frame else {
            if is_over {
                break;
            }
            input.reserve(READ);
            is_over = io.read_buf(&mut input).await.map_err(gone)? == 0;
            continue;
        };
        poll_fn(|context| rate.poll_one(context)).await;
        let taken = match &into {
            Into::Queue(queue) => queue.put(frame).await.map(drop),
            Into::Topic(topic) => client.publish(topic, frame).await.map(drop),
        };
        taken.map_err(|error| failed(error.code(), error.to_string()))?;
        done += 1;
    }
    io.write_all(format!("done {done}\n").as_bytes()).await.map_err(gone)
}

/// Where the frames of a stream go.
enum Into<'t> {
    Topic(&'t str),
    Queue(Queue),
}

/// A subscription of a stream, until dropped.
struct Joined<'s> {
    shared: &'s Shared,
    session: &'s Session,
    outbox: &'s Arc<Outbox>,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        self.session.count_events(0, self.outbox.take_uncounted());
        self.shared.hub.leave_all(self.outbox);
    }
}

async fn first_line(io: &mut Box<dyn Io>, input: &mut BytesMut) -> Result<String, End> {
    loop {
        if let Some(at) = input.iter().take(LINE_MAX).position(|byte| *byte == b'\n') {
            let line = input.split_to(at + 1);
            let line = String::from_utf8(line.to_vec())
                .map_err(|_| end("protocol", "the first line is not UTF-8"))?;
            return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
        }
        if input.len() >= LINE_MAX {
            return Err(end("protocol", "the first line has over 1024 bytes"));
        }
        input.reserve(LINE_MAX);
        if io.read_buf(input).await.map_err(gone)? == 0 {
            return Err(None);
        }
    }
}

impl<'l> Opening<'l> {
    fn parse(line: &'l str) -> Result<Self, &'static str> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, token, verb, target, frames] = words[..] else {
            return Err("the first line is not `NAME TOKEN VERB TARGET FRAMES`");
        };
        let verb = match verb {
            "subscribe" => Verb::Subscribe,
            "publish" => Verb::Publish,
            "put" => Verb::Put,
            _ => return Err("the third word is not `subscribe`, `publish` or `put`"),
        };
        let frames = match frames {
            "lines" => Frames::Lines,
            "length" => Frames::Length,
            _ => return Err("the fifth word is not `lines` or `length`"),
        };
        Ok(Self { name, token: (token != "-").then_some(token), verb, target, frames })
    }
}

fn end(word: &str, text: impl ToString) -> End {
    Some((word.to_owned(), text.to_string()))
}

fn of(error: Error) -> End {
    end(error.code(), &error)
}

fn of_session(why: SessionEnd) -> End {
    match why {
        SessionEnd::Stopping => of_gateway(Ending::Main),
        SessionEnd::Revoked => end("revoked", "the operator took back its name or its proof"),
        other => end("ended", other),
    }
}

fn of_gateway(why: Ending) -> End {
    let (word, text) = why.said();
    end(word, text)
}

fn gone(_error: io::Error) -> End {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_five_words() {
        let opening = Opening::parse("app:sensor s3cret publish sensors.kitchen lines").unwrap();
        let token = Some("s3cret");
        let (verb, frames) = (Verb::Publish, Frames::Lines);
        assert_eq!(opening, Opening { name: "app:sensor", token, verb, target: "sensors.kitchen", frames });
        assert_eq!(Opening::parse("a:b - subscribe t length").unwrap().token, None);
        for line in ["", "a", "a b c d", "a b publish d lines e", "a b send d lines", "a b put d words"] {
            assert!(Opening::parse(line).is_err(), "{line}");
        }
    }
}
