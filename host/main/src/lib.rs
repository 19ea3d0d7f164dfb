//! Embed Weir: sandboxed WebAssembly extensions that talk to each other and to your program.
//!
//! A [`Main`] hosts extensions, each one a WebAssembly component, on one worker thread. Extensions call contracts and
//! publish events, among themselves and with your program. They reach only what the operator granted.
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
//! Starting a Main, or checking a component, turns off the backtraces of wasmtime's errors for the whole process,
//! because an extension may read the text of an error.
//!
//! | to | see |
//! | --- | --- |
//! | start and end Main | [`host`] |
//! | configure extensions, grants and limits | [`config`], [`names`] |
//! | call, publish, subscribe, put and take | [`client`] |
//! | answer extensions from Rust | [`service`] |
//! | let programs in as peers with grants | [`peers`] |
//! | start, stop, reload and watch extensions | [`control`], [`events`], [`logs`] |
//! | follow a request from extension to extension | [`traces`] |
//! | see use of limits, topics and queues | [`limits`], [`traffic`] |
//! | run directories of hooks | [`hooks`] |
//! | inspect, check, compile and sign components | [`component`] |
//! | read what a component describes of its contracts | [`openrpc`], [`Control::contracts`] |
//! | run your own work beside the extensions | [`attached`] |
//! | do all that without async code | [`blocking`] |

pub mod attached;
pub mod client;
pub mod control;
pub mod host;
pub mod limits;
pub mod logs;
pub mod peers;
pub mod service;
pub mod traffic;

mod contracts;
mod hooks_service;
#[cfg(feature = "http")]
mod http_servers;
mod load;
mod lock;
mod parts;
mod plan;
mod stores;
#[cfg(test)]
mod test_bus;
mod versions;

/// Waits for any future of this crate on the caller's own thread, for programs without async code.
///
/// The futures need no runtime. Call [`wait`](blocking::wait) from a plain loop or from `spawn_blocking`. Inside an
/// async task it would stop the whole thread, so it fails with
/// [`BlockingError::InAsync`](blocking::BlockingError::InAsync).
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

/// Components before they run: inspect, check, compile and sign them.
pub mod component {
    pub use crate::{
        lock::{LockError, lock},
        versions::refused_version,
    };
    pub use weir_guest::{
        AddressClass, ArtifactFacts, Compilation, CompileTarget, CompileTargetError, DirNeed, InspectError,
        Inspection, LoadError, LoadFault, Manifest, Needs, RulesError, Signature, SignatureError,
        artifact_facts, cache_is_ours, check, inspect, inspect_bytes,
    };
    #[cfg(feature = "compiler")]
    pub use weir_guest::{NotAKey, NotAVersion, SigningKey, compile, compile_helper, confinement_warning};
    pub use weir_versions::proven;
}

/// The configuration, from a file or from Rust.
pub mod config {
    pub use weir_config::{
        AddressGrant, AddressRange, AddressSpace, ArtifactHash, ArtifactTextError, ComponentLock,
        ComponentLockError, ComponentLockFault, ComponentSource, Config, ConfigError, ConfigErrors,
        CredentialName, CredentialNameError, Difference, DirGrant, DirMode, Effect, ErrorRate,
        ExtensionConfig, Factor, FactorError, Feature, Features, FileLock, GrantError, Grants, GuestPath,
        HttpGrant, HttpMethod, HttpTarget, Limits, Loader, LockedExtension, MainConfig, MountPath,
        NetAddress, NetGrant, PeerConfig, PeerSessionLimits, QueueConfig, ReadyWhen, ReloadMode,
        RestartConfig, RestartPolicy, Revoked, RevokedError, SecretSource, ServesHttp, Shape, StoreGrant,
        SubscribeGrant, TableChange, TableDifference, TokenHash, TokenHashError, TopicConfig, Traces,
        TrustedKey, UpdateConfig, Validate, extend, keys, not_in_this_build, words,
    };
    pub use weir_names::{CpuShare, CpuShareError, Policy, QueuePolicy, RequestPolicy};
}

/// Events of Main and its extensions: see [`Control::events`].
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

/// Requests by HTTP that extensions and hooks send: the table `[http]` of a [`Config`]. And those that extensions serve: see
/// [`Attached::http`](attached::Attached::http).
#[cfg(feature = "http")]
pub mod http {
    pub use crate::http_servers::{HttpBody, HttpBodyError, HttpServer, HttpServers};
    pub use weir_http::HttpConfig;
}

/// Checked names, and typed contracts.
pub mod names {
    pub use weir_names::{
        CallGrant, ContractName, ExtensionId, HookDirName, NameError, OperationName, PeerName, QueueName,
        StoreName, Topic, TopicPattern, chain, codec, harmless, is_harmful, log_filter,
    };
}

/// Key-value stores: see [`Control::store`].
#[cfg(feature = "store")]
pub mod store {
    pub use weir_store::{
        Bucket, MAX_KEY, MAX_KEYS_AT_ONCE, MAX_PAGE, OpenError, Page, Row, Rows, Store, StoreConfig,
        StoreError, StoreUsage, StoresConfig,
    };
}

/// Traces: which messages were sent for which, and what became of each. See [`Control::spans`].
pub mod traces {
    pub use weir_bus::RecordedSpans;
    pub use weir_names::{SpanId, TraceContext, TraceContextError, TraceId, TraceIdError};
    pub use weir_reports::{Span, SpanKind};
}

/// The version of `bytes` that payloads are made of.
pub use bytes;
pub use weir_config::{Config, ExtensionConfig, MainConfig};
pub use weir_names::{Contract, Error, HandlerError, Operation};
pub use weir_openrpc as openrpc;

pub use crate::{
    client::{CallOptions, Client},
    control::Control,
    host::{Builder, Main, StartError},
    load::{load, loader, parse},
    service::Service,
};

/// The example of the crate's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The guide's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedders.md")]
struct EmbeddersGuide;
