//! Embed Weir: sandboxed WebAssembly extensions that talk to each other and to your program.
//!
//! A [`Main`] hosts extensions, each one a WebAssembly component, on one worker thread. They reach
//! each other and your program through contracts (requests that are answered once) and topics
//! (events for whoever has subscribed), and nothing that its operator did not grant.
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_host::{Config, Main};
//!
//! let main = Main::builder(Config::load("device.toml".as_ref())?).start().await?;
//! let memory = main.client().call("device.info@1", "memory", "{}").await?;
//! println!("{}", String::from_utf8_lossy(&memory));
//! main.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Programs without async code use [`blocking`].

pub mod blocking;
pub mod config;

mod bus;
mod client;
mod control;
mod events;
mod extension;
mod hooks;
mod host;
#[cfg(feature = "control")]
mod http;
mod limits;
mod logs;
mod names;
mod policy;
mod roster;
mod service;
mod supervisor;
mod traffic;
mod usage;

#[cfg(feature = "control")]
pub use crate::http::SocketError;
pub use crate::{
    bus::{Error, HandlerError, MessageId, PeerId, Receipt},
    client::{CallOptions, Client, ClientOperation, Job, Queue, ReceivedEvent, SubscribeOptions, Subscriber},
    config::{
        ArtifactHash, Config, ConfigErrors, CpuShare, ExitCodes, ExtensionConfig, Grants, HookDirConfig,
        Limits, MainConfig, QueueConfig, ReloadMode, RestartConfig, RestartPolicy, SubscribeGrant,
        TopicConfig, TrustedKey,
    },
    control::{Control, LogLines, NextLine},
    events::{MainEvent, MainEvents},
    extension::{
        Compilation, DirNeed, InspectError, Inspection, LoadError, LoadFault, Manifest, Needs,
        check as check_component, inspect as inspect_component,
    },
    hooks::{HookCall, HookDir, HookError, HookOutcome, HookReport, HookRun, Hooks},
    host::{Builder, Main, StartError, Started, WorkerPanicked, check_mappings},
    limits::{EffectiveLimit, ExtensionLimits, LimitValue, LimitsReport},
    logs::{Level, LogLine, Source},
    names::{
        ContractName, ExtensionId, HookDirName, NameError, OperationName, QueueName, Topic, TopicPattern,
    },
    policy::Policy,
    roster::{ExtensionStatus, FailureRecord, HandledMessage, LimitHit, State},
    service::{Answer, ServedRequest, Service},
    supervisor::{ControlError, NotReloaded, ReloadReport},
    traffic::{JobStatus, QueueStatus, SubscriptionStatus, TopicStatus, TopicsReport},
};

#[cfg(feature = "compiler")]
pub use crate::extension::{NotAKey, SigningKey, compile as compile_component, compile_helper};

/// The guide's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedders.md")]
struct EmbeddersGuide;
