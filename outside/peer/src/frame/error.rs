//! Why bytes are no frame.

/// Why bytes are no frame of the protocol. It ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than a frame may be.
    #[error("a frame of {length} bytes, where at most {max} are allowed")]
    TooLong {
        /// Length that the frame claims.
        length: u32,
        /// Length that is allowed.
        max: usize,
    },
    /// A frame without a kind.
    #[error("an empty frame")]
    Empty,
    /// A kind that this side of the protocol does not have.
    #[error("a frame of the unknown kind {0:#04x}")]
    UnknownKind(u8),
    /// A field of a frame is not as it must be.
    #[error("{frame}: `{field}` {fault}")]
    Malformed {
        /// Name of the frame, such as `CALL`.
        frame: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Its fault, such as `is cut short`.
        fault: &'static str,
    },
}
