//! The words of Weir: what operators, authors and programs name things by, how a contract's values travel, why a message
//! was not delivered, and text that is safe to show.
//!
//! Hosts and extensions share it, so it stays small. Names are checked once, when they are made. Knows nothing of what
//! has a name, or may use it.

pub mod codec;
mod contract;
mod error;
mod name;
mod policy;
pub mod rules;
mod share;
mod text;

pub use self::{
    contract::{Contract, Operation},
    error::{Error, HandlerError},
    name::{
        ContractName, ExtensionId, HookDirName, MAIN, NameError, OperationName, QueueName, Topic,
        TopicPattern,
    },
    policy::{Policy, QueuePolicy, RequestPolicy},
    share::{CpuShare, CpuShareError},
    text::{harmless, is_harmful, truncated},
};
