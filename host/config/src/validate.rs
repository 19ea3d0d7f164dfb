//! What Main checks of an extension's messages.

use crate::words;

/// What Main checks by the extension's own description of its contracts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validate {
    /// Nothing.
    #[default]
    Nothing,
    /// Arguments of the requests to it. A request that does not fit is answered, and never delivered.
    Requests,
}

words!(Validate, "a kind of check: ": "nothing" = Nothing, "requests" = Requests);
