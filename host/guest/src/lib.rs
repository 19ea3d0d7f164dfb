//! Extensions: sandboxed programs, each one a task that owns its Store.
//!
//! Owns everything that touches wasmtime: engines, compiled programs, the imports of guests and the limits on their
//! use. Knows nothing of routing tables, or of when and why an extension is started. A guest's messages go to the
//! [`bus`](weir_bus), and the way in which it ended goes to the caller that ran it.

mod abi;
mod calibration;
mod command;
mod delivery;
mod dir_locks;
mod engine;
mod exit;
mod exports;
mod failures;
mod features;
mod fit;
mod http;
mod imports;
mod inspect;
mod instance;
mod instance_state;
mod keyvalue;
mod memory;
mod meter;
mod openings;
mod output;
mod program;
mod quota;
mod sandbox;
#[cfg(feature = "http")]
mod serve;
mod settings;
mod signals;
mod wasi;

#[cfg(feature = "http")]
pub use self::http::{HttpBody, HttpBodyError, HttpExchanges};
#[cfg(feature = "compiler")]
pub use self::program::{NotAKey, NotAVersion, SigningKey, compile, compile_helper, confinement_warning};
#[cfg(feature = "http")]
pub use self::serve::http_operation;
pub use self::{
    calibration::fuel_per_ms,
    command::{AT_ONCE, Cut, End, Ended, RunsOn, Say, Surroundings, WasiCommand},
    delivery::{Handling, Unanswered},
    engine::{AddressClass, CompileTarget, CompileTargetError, Runtime},
    exit::Exit,
    http::{Http, HttpOutlet},
    instance::{Instance, InstanceEnd, SharedResources},
    keyvalue::KeyValue,
    openings::Openings,
    output::Output,
    program::{Compilations, FileStamp, LoadRequest, Loaded, Programs, Sources},
    quota::Quotas,
    sandbox::Sandbox,
    settings::{Settings, Values},
    signals::{Noted, Notice, Signals},
    wasi::Dirs,
};
pub use self::{
    inspect::{DataStatement, DirNeed, InspectError, Inspection, Manifest, Needs, inspect, inspect_bytes},
    program::{
        Admission, ArtifactFacts, Compilation, ComponentOrigin, LoadError, LoadFault, OpenComponent, Rules,
        RulesError, Signature, SignatureError, artifact_facts, cache_is_ours, check, component_is_whole,
        default_cache,
    },
};
