//! Extensions: sandboxed programs, each one a task that owns its Store.
//!
//! Owns all that touches wasmtime: the engine, compiled programs, the imports that a guest sees and
//! the limits on what it may use. Knows nothing of routing tables, and not when an extension is
//! started, or why: it hands messages to the [`bus`](weir_bus) and its exit to whoever started it.

mod abi;
mod calibration;
mod command;
mod engine;
mod imports;
mod in_hand;
mod inspect;
mod instance;
mod jobs;
mod limit;
mod memory;
mod meter;
mod openings;
mod output;
mod program;
mod sandbox;
mod state;
mod wasi;

#[cfg(feature = "compiler")]
pub use self::program::{NotAKey, SigningKey, compile, compile_helper};
pub use self::{
    calibration::fuel_per_ms,
    command::{AT_ONCE, Command, Cut, End, Ended, Place, Surroundings},
    engine::Runtime,
    instance::{Exit, Handling, Instance, Noted, Notice, Signals},
    openings::Openings,
    output::Output,
    program::{Loaded, Programs, Sources, Stamp, Wanted, chain},
    sandbox::Sandbox,
    wasi::Dirs,
};
pub use self::{
    inspect::{DirNeed, InspectError, Inspection, Manifest, Needs, inspect},
    program::{Compilation, LoadError, LoadFault, check},
};
