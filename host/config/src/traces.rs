//! The detail of failures' traces.

use crate::words;

/// What a trace says of each running function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Traces {
    /// Its name.
    #[default]
    Functions,
    /// Also its number and offset, for `weir symbolise`. The compiled code is larger.
    Lines,
}

words!(Traces, "a kind of trace: ": "functions" = Functions, "lines" = Lines);
