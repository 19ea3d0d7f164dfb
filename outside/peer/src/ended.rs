//! Why a session ended.

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Main closed it.
    #[error("Main closed the session: `{code}`: {text}")]
    Closed {
        /// A code of [`frame::close`](crate::frame::close).
        code: String,
        /// For people.
        text: String,
    },
    /// Main broke the protocol, and the client left.
    #[error("Main broke the protocol: {0}")]
    Protocol(String),
    /// The connection ended without a word of Main's.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// This program left: by [`Peer::leave`](crate::Peer::leave), or since it dropped everything of the session.
    #[error("the program left")]
    Left,
}
