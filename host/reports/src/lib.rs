//! What Main reports of its extensions, peers and traces, in Rust and as JSON. Main writes these types, and programs
//! without Main in them read them.
//!
//! Owns the fields, their names in JSON, and how an answer of another version is read: fields that this version does not
//! know are ignored, and words that it does not know become an `Other`. Knows nothing of how a figure is measured, or of
//! how an answer travels.
//!
//! Main makes its reports in several crates, so the structs are not `#[non_exhaustive]`. Later versions add fields all the
//! same.

mod extension;
mod limit_hit;
mod peer;
mod span;
#[cfg(test)]
mod tests;
mod time;
mod traffic;
mod version;

pub use self::{
    extension::{
        BeingCompiled, ExtensionState, ExtensionStatus, FailureRecord, HandledMessage, HttpAnswers,
        HttpServerStatus, MessageId,
    },
    limit_hit::{LimitHit, LimitName, LimitUnit, LimitValue},
    peer::{PeerCounts, PeerStatus, SessionId, SessionStatus},
    span::{Span, SpanKind},
    time::{rfc3339, rfc3339_if_any, rfc3339_nanos, seconds, seconds_if_any},
    traffic::{OperationStatus, QueueStatus, SubscriptionStatus, TopicStatus},
    version::{
        DataSnapshot, DataStatus, ServingVersion, Standing, VersionChange, VersionFigures, VersionStatus,
        VersionsStatus,
    },
};
