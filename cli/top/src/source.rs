//! Where the view's figures come from, and where its orders go. How Main is reached is the caller's business.

use std::{
    fmt::{self, Display},
    time::Instant,
};

/// Asks Main. Called from a thread of its own, one call at a time.
pub trait Looks: Send {
    /// Asks for all that is shown, and for the log of the extension `log`.
    ///
    /// # Errors
    ///
    /// If Main cannot be reached, does not answer, or refuses.
    fn look(&mut self, log: Option<&str>) -> Result<Answers, Fault>;
}

/// Gives orders to Main. Called from a thread of its own, one call at a time.
pub trait Orders: Send {
    /// Gives an order to the extension `id`, and waits until it is carried out. Returns the state that follows.
    ///
    /// # Errors
    ///
    /// If Main cannot be reached, does not answer, or refuses.
    fn give(&mut self, order: Order, id: &str) -> Result<String, Fault>;
}

/// What Main answered, as JSON.
#[derive(Clone, Debug)]
pub struct Answers {
    /// When `extensions` came. Rates are over the time between two of them.
    pub at: Instant,
    /// The id of Main's process, which tells one Main from the next.
    pub pid: Option<u64>,
    /// The answer of `/v1/extensions`.
    pub extensions: Vec<u8>,
    /// The answer of `/v1/peers`. `None` for an older Main, which has no peers.
    pub peers: Option<Vec<u8>>,
    /// The answer of `/v1/operations`. `None` for an older Main, which does not count them.
    pub operations: Option<Vec<u8>>,
    /// The lines of `/v1/logs`, of the extension that was asked for.
    pub log: Vec<u8>,
}

impl Answers {
    /// Makes answers of that of `/v1/extensions`, which has just come, without the others.
    #[must_use]
    pub fn of(extensions: Vec<u8>) -> Self {
        Self { at: Instant::now(), pid: None, extensions, peers: None, operations: None, log: Vec::new() }
    }
}

/// Why Main gave no answer, in words for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

/// What the view can tell Main to do with an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop the extension.
    Stop,
    /// Stop and start the extension, with its failures forgotten.
    Restart,
    /// Replace the extension by what its file has now.
    Reload,
}

impl Order {
    /// Returns the last segment of the order's route, as in `restart`.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
        }
    }

    /// Returns the first word of the question.
    pub(crate) fn question(self) -> &'static str {
        match self {
            Self::Stop => "Stop",
            Self::Restart => "Restart",
            Self::Reload => "Reload",
        }
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}
