//! Embed Weir: sandboxed WebAssembly extensions that talk to each other and to your program.
//!
//! A [`Main`] hosts extensions, each one a WebAssembly component, on one worker thread. They reach
//! each other and your program through contracts (requests that are answered once) and topics
//! (events for whoever has subscribed), and nothing that its operator did not grant.
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_host::Main;
//!
//! let main = Main::builder(weir_host::load("device.toml".as_ref())?).start().await?;
//! let memory = main.client().call("device.info@1", "memory", "{}").await?;
//! println!("{}", String::from_utf8_lossy(&memory));
//! main.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Programs without async code use [`blocking`].

pub mod blocking;

mod attached;
mod client;
mod control;
mod hooks_service;
mod host;
mod limits;
mod load;
mod service;
mod traffic;

pub use weir_bus::{Error, HandlerError, MessageId, PeerId, Receipt};
pub use weir_config::{
    self as config, ArtifactHash, Config, ConfigErrors, CpuShare, ExtensionConfig, Grants, LimitHit,
    LimitName, LimitValue, Limits, Loader, MainConfig, QueueConfig, ReloadMode, RestartConfig, RestartPolicy,
    SubscribeGrant, TopicConfig, TrustedKey,
};
pub use weir_guest::{
    Compilation, DirNeed, InspectError, Inspection, LoadError, LoadFault, Manifest, Needs,
    check as check_component, fuel_per_ms, inspect as inspect_component,
};
#[cfg(feature = "compiler")]
pub use weir_guest::{NotAKey, SigningKey, compile as compile_component, compile_helper};
pub use weir_hooks::{
    ExitCodes, HookCall, HookDir, HookDirConfig, HookError, HookOutcome, HookReport, HookRun, Hooks,
    HooksConfig,
};
pub use weir_logs::{Level, LogLine, Source};
pub use weir_names::{
    ContractName, ExtensionId, HookDirName, NameError, OperationName, Policy, QueueName, Topic, TopicPattern,
    harmless,
};
pub use weir_supervisor::{
    ControlError, ExtensionStatus, FailureRecord, HandledMessage, MainEvent, MainEvents, NotReloaded,
    ReloadReport, State, TooFewMappings, check_mappings,
};

pub use crate::{
    attached::{Attached, Closed},
    client::{CallOptions, Client, ClientOperation, Job, Queue, ReceivedEvent, SubscribeOptions, Subscriber},
    control::{Control, LogLines, NextLine},
    host::{Builder, Main, StartError, Started, WorkerPanicked},
    limits::{EffectiveLimit, ExtensionLimits, LimitsReport},
    load::{load, loader, parse},
    service::{Answer, ServedRequest, Service},
    traffic::{JobStatus, QueueStatus, SubscriptionStatus, TopicStatus, TopicsReport},
};

/// The guide's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedders.md")]
struct EmbeddersGuide;
