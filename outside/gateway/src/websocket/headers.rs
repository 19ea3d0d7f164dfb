//! Checks of an app's frames that the library does not make, or makes too late. They read the headers as the bytes
//! pass: a length has its shortest form (RFC 6455, section 5.2), a control frame is short, and the fragments of a
//! message are not too long together, before the last of them is in memory.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::{
    self,
    error::{CapacityError, ProtocolError},
};

/// The payload of a control frame has at most this many bytes (RFC 6455, section 5.5).
const CONTROL_MAX: u64 = 125;

/// Bytes of the key of a masked frame.
const MASK: u64 = 4;

/// A connection that checks the headers of an app's frames. At a fault one read fails, after all bytes before the fault
/// were read.
#[derive(Debug)]
pub(crate) struct Checked<S> {
    io: S,
    headers: Headers,
    /// A fault found behind the bytes that were read last. The next read fails with it.
    fault: Option<Fault>,
    /// Whether a fault was found. Nothing is checked after that: what still comes is thrown away.
    is_over: bool,
}

/// The error of a read. A fault that [`Checked`] found becomes an error of the library; others stay as they are.
pub(crate) fn fault_of(error: tungstenite::Error) -> tungstenite::Error {
    let found = match &error {
        tungstenite::Error::Io(error) => error.get_ref().and_then(|error| error.downcast_ref::<Fault>()),
        _ => None,
    };
    match found.copied() {
        None => error,
        Some(Fault::Length) => ProtocolError::InvalidCloseSequence.into(),
        Some(Fault::LongControl) => ProtocolError::ControlFrameTooBig.into(),
        Some(Fault::TooLong { size, max }) => {
            let (size, max_size) = (bytes(size), bytes(max));
            CapacityError::MessageTooLong { size, max_size }.into()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("a length is not in its shortest form")]
    Length,
    #[error("a control frame has over {CONTROL_MAX} bytes")]
    LongControl,
    #[error("a message has {size} bytes, and {max} are possible")]
    TooLong { size: u64, max: u64 },
}

/// How far the headers of an app's frames are read.
#[derive(Debug)]
struct Headers {
    /// Most bytes of a message.
    max: u64,
    /// Bytes of the fragments of the message whose last fragment is still to come.
    collected: u64,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    First,
    /// After the first byte.
    Second(u8),
    /// In an extended length of `of` bytes, of which `missing` are still to come. `length` is the number in the others.
    Length {
        first: u8,
        is_masked: bool,
        of: u8,
        missing: u8,
        length: u64,
    },
    /// After the header of a frame, of which this many bytes are still to come.
    Rest(u64),
}

impl Headers {
    /// Passes bytes; the error says how many of them come before the byte with which a fault shows.
    fn pass(&mut self, all: &[u8]) -> Result<(), (usize, Fault)> {
        let mut rest = all;
        while let Some((byte, after)) = rest.split_first() {
            if let At::Rest(missing @ 1..) = self.at {
                let here = missing.min(rest.len() as u64);
                self.at = At::Rest(missing - here);
                rest = rest.get(bytes(here)..).unwrap_or_default();
                continue;
            }
            self.at = self.step(*byte).map_err(|fault| (all.len() - rest.len(), fault))?;
            rest = after;
        }
        Ok(())
    }

    /// Reads the next byte of a header, and returns what comes after it.
    fn step(&mut self, byte: u8) -> Result<At, Fault> {
        match self.at {
            At::First | At::Rest(_) => Ok(At::Second(byte)),
            At::Second(first) => {
                let is_masked = byte & 0x80 != 0;
                let extended = |of| At::Length { first, is_masked, of, missing: of, length: 0 };
                match byte & 0x7f {
                    126 => Ok(extended(2)),
                    127 => Ok(extended(8)),
                    length => self.frame(first, is_masked, length.into()),
                }
            }
            At::Length { first, is_masked, of, missing, length } => {
                let length = (length << 8) | u64::from(byte);
                match (missing, of) {
                    (1, 2) if length < 126 => Err(Fault::Length),
                    (1, 8) if length <= u16::MAX.into() => Err(Fault::Length),
                    (1, _) => self.frame(first, is_masked, length),
                    _ => Ok(At::Length { first, is_masked, of, missing: missing - 1, length }),
                }
            }
        }
    }

    /// Checks a frame once its length is known, and returns that its key and payload come next.
    fn frame(&mut self, first: u8, is_masked: bool, length: u64) -> Result<At, Fault> {
        let (is_last, is_control) = (first & 0x80 != 0, first & 0x08 != 0);
        if is_control && length > CONTROL_MAX {
            return Err(Fault::LongControl);
        }
        if !is_control {
            let size = self.collected.saturating_add(length);
            if size > self.max {
                return Err(Fault::TooLong { size, max: self.max });
            }
            self.collected = if is_last { 0 } else { size };
        }
        Ok(At::Rest(length + if is_masked { MASK } else { 0 }))
    }
}

impl<S> Checked<S> {
    /// Checks a connection whose messages may have at most `max` bytes.
    pub(super) fn new(io: S, max: usize) -> Self {
        let headers = Headers { max: max as u64, collected: 0, at: At::First };
        Self { io, headers, fault: None, is_over: false }
    }

    /// The connection without checks, for reading what is thrown away.
    pub(super) fn unchecked(&mut self) -> &mut S {
        &mut self.io
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Checked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(fault) = self.fault.take() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        if self.is_over {
            return Poll::Ready(Ok(()));
        }
        let read = buffer.filled().get(before..).unwrap_or_default();
        let Err((good, fault)) = self.headers.pass(read) else { return Poll::Ready(Ok(())) };
        self.is_over = true;
        buffer.set_filled(before + good);
        if good == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
        }
        self.fault = Some(fault);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Checked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

fn bytes(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 70_000;

    /// What is read before the fault, by all ways to cut the input in two, and the fault.
    fn read(input: &[u8]) -> Result<(), (usize, Fault)> {
        let headers = || Headers { max: MAX, collected: 0, at: At::First };
        let whole = headers().pass(input);
        for cut in 0..input.len().min(64) {
            let mut headers = headers();
            let (one, other) = input.split_at(cut);
            let parts = headers
                .pass(one)
                .and_then(|()| headers.pass(other).map_err(|(good, fault)| (good + cut, fault)));
            assert_eq!(parts, whole, "cut at {cut}");
        }
        whole
    }

    /// A frame with its length in a form of so many bytes.
    fn frame(first: u8, form: usize, length: u64) -> Vec<u8> {
        let mut frame = vec![first];
        match form {
            0 => frame.push(0x80 | u8::try_from(length).unwrap()),
            2 => frame.push(0x80 | 126),
            _ => frame.push(0x80 | 127),
        }
        frame.extend_from_slice(&length.to_be_bytes()[8 - form..]);
        frame.resize(frame.len() + 4 + usize::try_from(length).unwrap(), b' ');
        frame
    }

    #[test]
    fn a_length_has_one_form() {
        for (form, shortest, longest) in [(0, 0, 125), (2, 126, 65_535), (8, 65_536, MAX)] {
            for length in [shortest, longest] {
                assert_eq!(read(&frame(0x82, form, length)), Ok(()), "{length} in {form} bytes");
            }
        }
        for first in [0x81, 0x82, 0x89, 0x8a, 0x88] {
            for (form, length) in [(2, 0), (2, 125), (8, 0), (8, 125), (8, 126), (8, 65_535)] {
                let expected = Err((1 + form, Fault::Length));
                assert_eq!(read(&frame(first, form, length)), expected, "{length} in {form} bytes");
            }
        }
        let good = frame(0x81, 0, 9);
        let bad = [good.clone(), frame(0x89, 2, 3)].concat();
        assert_eq!(read(&bad), Err((good.len() + 3, Fault::Length)));
    }

    #[test]
    fn fragments_count_together_before_the_last_is_there_and_control_frames_between_do_not() {
        let half = frame(0x01, 2, 60_000);
        let ping = frame(0x89, 0, 125);
        let rest = |length| frame(0x80, 2, length);
        assert_eq!(read(&[half.clone(), ping.clone(), rest(10_000), half.clone()].concat()), Ok(()));
        let over = [half.clone(), ping, rest(10_001)].concat();
        let (good, fault) = read(&over).unwrap_err();
        assert_eq!(fault, Fault::TooLong { size: MAX + 1, max: MAX });
        assert!(good < over.len() - 10_000, "found in the header");
        assert_eq!(read(&[0x81, 0xff, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap_err().0, 9);
        assert_eq!(read(&frame(0x89, 2, 126)).unwrap_err().1, Fault::LongControl);
    }
}
