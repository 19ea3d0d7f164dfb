//! Embed Weir: sandboxed WebAssembly extensions that talk to each other and to your program.
//!
//! A [`Main`] hosts extensions, each one a WebAssembly component, on one worker thread. They reach
//! each other and your program through contracts (requests that are answered once) and topics
//! (events for all that have subscribed), and nothing that its operator did not grant.
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
//! | to | see |
//! | --- | --- |
//! | start and end Main | [`host`] |
//! | say what runs, with which grants and limits | [`config`], [`names`] |
//! | call, publish, subscribe, put and take | [`client`] |
//! | answer extensions from Rust | [`service`] |
//! | start, stop and reload extensions, and learn how they are | [`control`], [`events`], [`logs`] |
//! | see what limits are used, and what goes through topics and queues | [`limits`], [`traffic`] |
//! | run directories of hooks | [`hooks`] |
//! | inspect, check, compile and sign components | [`component`] |
//! | run work of your own beside the extensions | [`attached`] |
//! | do all that without async code | [`blocking`] |

pub mod attached;
pub mod client;
pub mod control;
pub mod host;
pub mod limits;
pub mod logs;
pub mod service;
pub mod traffic;

mod hooks_service;
mod load;
mod plan;

/// Waiting for any of the futures of this crate on the caller's own thread, for programs without async code.
///
/// The futures need no runtime. A wait from inside an async task would stop that task's whole thread, so it fails with
/// [`BlockingError::InAsync`](blocking::BlockingError::InAsync) instead. It may be called any number of times from a
/// plain loop, and from `spawn_blocking`.
///
/// ```no_run
/// use weir_host::{Main, blocking::wait};
///
/// # fn embed() -> Result<(), Box<dyn std::error::Error>> {
/// let main = wait(Main::builder(weir_host::load("device.toml".as_ref())?).start())?;
/// let memory = wait(main.client().call("device.info@1", "memory", "{}"))?;
/// println!("{}", String::from_utf8_lossy(&memory));
/// main.shutdown_blocking()?;
/// # Ok(())
/// # }
/// ```
pub mod blocking {
    pub use weir_schedule::{BlockingError, wait, wait_for};
}

/// Components, before they run: what is in them, and compiling and signing them.
pub mod component {
    pub use weir_guest::{
        Compilation, DirNeed, InspectError, Inspection, LoadError, LoadFault, Manifest, Needs, cache_is_ours,
        check, inspect,
    };
    #[cfg(feature = "compiler")]
    pub use weir_guest::{NotAKey, SigningKey, compile, compile_helper};
}

/// What an operator can configure, from a file or from Rust.
pub mod config {
    pub use weir_config::{
        ArtifactHash, ArtifactTextError, ComponentSource, Config, ConfigError, ConfigErrors, Difference,
        DirGrant, DirMode, ExtensionConfig, FileLock, GrantError, Grants, GuestPath, Limits, Loader,
        MainConfig, NetGrant, QueueConfig, ReloadMode, RestartConfig, RestartPolicy, Shape, SubscribeGrant,
        TopicConfig, Traces, TrustedKey, extend,
    };
    pub use weir_names::{CpuShare, CpuShareError, Policy, QueuePolicy, RequestPolicy};
}

/// What happens to extensions, as it happens: see [`Control::events`].
pub mod events {
    pub use weir_supervisor::{MainEvent, MainEvents};
}

/// Directories of hooks: see [`Main::hooks`].
pub mod hooks {
    pub use weir_hooks::{
        ExitCodes, HookCall, HookDir, HookDirConfig, HookError, HookOutcome, HookReport, HookRun, Hooks,
        HooksConfig,
    };
}

/// Names, checked when they are made, and how contracts are written down as constants.
pub mod names {
    pub use weir_names::{
        ContractName, ExtensionId, HookDirName, NameError, OperationName, QueueName, Topic, TopicPattern,
        codec, harmless, is_harmful,
    };
}

pub use weir_config::{Config, ExtensionConfig, MainConfig};
pub use weir_names::{Contract, Error, HandlerError, Operation};

pub use crate::{
    client::{CallOptions, Client},
    control::Control,
    host::{Builder, Main, StartError},
    load::{load, loader, parse},
    service::Service,
};

/// The guide's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedders.md")]
struct EmbeddersGuide;
