//! Hooks: directories of WASI commands that are run to completion, from async and from blocking code.
//!
//! Knows which files are hooks, in which order they run and what their exit codes mean, and brings the section
//! `[hooks.NAME]` to the operator's file. Knows nothing of wasmtime: [`weir_guest`] runs a command. Knows nothing of the
//! bus and of extensions.

mod call;
mod config;
mod exit_codes;
mod files;
mod hooks;
mod report;
mod run;

pub use self::{
    call::HookCall,
    config::{HookDirConfig, HooksConfig},
    exit_codes::ExitCodes,
    hooks::{Closing, HookDir, HookError, Hooks},
    report::{HookOutcome, HookReport, HookRun},
};
