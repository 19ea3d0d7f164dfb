//! Hooks: directories of WASI commands that run one after another, from async or blocking code.
//!
//! Knows which files are hooks, their order and their exit codes, and adds `[hooks.NAME]` to the operator's file.
//! Knows nothing of wasmtime ([`weir_guest`] runs a command), of the bus or of extensions.

mod config;
mod exit_codes;
mod files;
mod hooks;
mod report;
mod run;
mod told;

pub use self::{
    config::{HookDirConfig, HooksConfig},
    exit_codes::ExitCodes,
    hooks::{Closing, HookDir, HookError, Hooks},
    report::{HookOutcome, HookReport, HookRun},
    run::HookCall,
    told::{HookCount, HookCounts},
};
