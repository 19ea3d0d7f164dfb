//! The words of Weir: what operators, authors and programs name things by, and text that is safe to show.
//!
//! Everything here is checked once, when it is made. Knows nothing of what has a name, or may use it.

mod name;
mod policy;
mod share;
mod text;

pub use self::{
    name::{
        ContractName, ExtensionId, HookDirName, MAIN, NameError, OperationName, QueueName, Topic,
        TopicPattern,
    },
    policy::{Policy, QueuePolicy, RequestPolicy},
    share::{CpuShare, CpuShareError},
    text::{harmless, is_harmful},
};
