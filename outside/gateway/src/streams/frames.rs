//! Frames of a stream: lines, or bytes after their length.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes of the length before a frame.
const PREFIX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// Each ends with a newline.
    Lines,
    /// Each comes after its length, 4 bytes in little-endian order.
    Length,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameError {
    TooLarge,
    /// The input ended within the frame.
    CutOff,
}

impl Frames {
    /// Takes the next frame of at most `max` bytes, if all of it is there. With `is_over` nothing more comes: a last
    /// line needs no newline. `searched`: bytes of the input that the last call found to be no whole line; 0 at first.
    pub(super) fn next(
        self,
        input: &mut BytesMut,
        searched: &mut usize,
        max: usize,
        is_over: bool,
    ) -> Result<Option<Bytes>, FrameError> {
        let frame = match self {
            Self::Lines => match input.iter().skip(*searched).position(|byte| *byte == b'\n') {
                Some(more) if *searched + more > max => return Err(FrameError::TooLarge),
                Some(more) => {
                    let frame = input.split_to(std::mem::take(searched) + more);
                    input.advance(1);
                    frame
                }
                None if input.len() > max => return Err(FrameError::TooLarge),
                None if is_over && !input.is_empty() => input.split(),
                None => {
                    *searched = input.len();
                    return Ok(None);
                }
            },
            Self::Length => {
                let Some(prefix) = input.first_chunk::<PREFIX>() else {
                    return if is_over && !input.is_empty() { Err(FrameError::CutOff) } else { Ok(None) };
                };
                let length = usize::try_from(u32::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
                if length > max {
                    return Err(FrameError::TooLarge);
                }
                if input.len() - PREFIX < length {
                    return if is_over { Err(FrameError::CutOff) } else { Ok(None) };
                }
                input.advance(PREFIX);
                input.split_to(length)
            }
        };
        // A frame must not keep the buffer that it came in, with others' bytes, alive.
        Ok(Some(Bytes::copy_from_slice(&frame)))
    }

    /// Adds a payload as a frame. False, with nothing added, if it cannot be one: a line has no newline in it, and a
    /// length has 4 bytes.
    pub(super) fn write(self, output: &mut BytesMut, payload: &[u8]) -> bool {
        let can_be = self.open(output, payload);
        if can_be {
            output.put_slice(payload);
            output.put_slice(self.end());
        }
        can_be
    }

    /// Adds what comes before a payload. False, with nothing added, if the payload cannot be a frame.
    pub(super) fn open(self, output: &mut BytesMut, payload: &[u8]) -> bool {
        match (self, u32::try_from(payload.len())) {
            (Self::Lines, _) => !payload.contains(&b'\n'),
            (Self::Length, Err(_)) => false,
            (Self::Length, Ok(length)) => {
                output.put_u32_le(length);
                true
            }
        }
    }

    /// What comes after a payload.
    pub(super) fn end(self) -> &'static [u8] {
        match self {
            Self::Lines => b"\n",
            Self::Length => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(frames: Frames, input: &[u8], max: usize) -> Result<Vec<Bytes>, FrameError> {
        let mut all = Vec::new();
        let (mut rest, mut searched) = (BytesMut::new(), 0);
        // Byte by byte, as a slow network brings them.
        for byte in input {
            rest.put_u8(*byte);
            while let Some(frame) = frames.next(&mut rest, &mut searched, max, false)? {
                all.push(frame);
            }
        }
        while let Some(frame) = frames.next(&mut rest, &mut searched, max, true)? {
            all.push(frame);
        }
        Ok(all)
    }

    #[test]
    fn what_is_written_is_read() {
        for frames in [Frames::Lines, Frames::Length] {
            let mut output = BytesMut::new();
            for payload in ["", "21.5", "a b"] {
                assert!(frames.write(&mut output, payload.as_bytes()));
            }
            assert_eq!(all(frames, &output, 4).unwrap(), ["", "21.5", "a b"]);
            assert_eq!(all(frames, &output, 3), Err(FrameError::TooLarge));
        }
    }

    #[test]
    fn the_last_line_needs_no_newline_and_a_length_needs_its_bytes() {
        assert_eq!(all(Frames::Lines, b"a\nb", 9).unwrap(), ["a", "b"]);
        assert_eq!(all(Frames::Length, b"\x02\0\0\0a", 9), Err(FrameError::CutOff));
        assert_eq!(all(Frames::Length, b"\x02\0", 9), Err(FrameError::CutOff));
        assert_eq!(all(Frames::Length, &[255; 4], 9), Err(FrameError::TooLarge));
    }

    #[test]
    fn a_payload_with_a_newline_is_no_line() {
        let mut output = BytesMut::new();
        assert!(!Frames::Lines.write(&mut output, b"a\nb"));
        assert!(output.is_empty());
    }
}
