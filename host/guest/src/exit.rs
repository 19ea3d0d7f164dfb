//! How a guest ended and which limit ended it, judged by wasmtime's error and the guest's sandbox.

use std::{any::Any, io, time::Duration};

use wasmtime::{GcHeapOutOfMemory, ThrownException, Trap, component::ResourceTableError};
use wasmtime_wasi::I32Exit;
use weir_bus::MessageId;
use weir_config::{LimitHit, LimitKey, LimitName, Limits};
use weir_metrics::nanoseconds;
use weir_names::harmless;

use super::{openings::may_come, sandbox::Sandbox};

/// wasmtime's message for a guest that traps on purpose.
const GAVE_UP: &str = "wasm `unreachable` instruction executed";

/// What ended a guest whose objects take all of its memory.
const NO_ROOM: &str = "no room for another object";

/// An exception left the guest's code, within a call of the host.
#[derive(Debug, thiserror::Error)]
#[error("an exception that nothing caught")]
pub(super) struct Uncaught;

/// Why an instance ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exit {
    /// `main` returned, the guest exited with code 0, or the instance was stopped before its program began.
    #[error("finished")]
    Finished,
    /// `main` returned an error, the guest exited with a code other than 0, or it announced a failure before it ended.
    #[error("{}", .0.as_deref().unwrap_or("`main` returned an error"))]
    Failed(Option<String>),
    /// The instance cannot be started.
    #[error("cannot start: {reason}")]
    Start {
        /// Why.
        reason: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
    },
    /// The instance cannot be started now through no fault of its own: a file system hangs or is missing, or a secret
    /// or a store cannot be opened.
    #[error("cannot start: {reason}")]
    Hindered {
        /// Why.
        reason: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
    },
    /// The guest trapped, or a call of the host ended it.
    #[error("trapped: {cause}")]
    Trapped {
        /// The trap, in words.
        cause: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
        /// Function names, innermost first.
        trace: Vec<String>,
    },
    /// The guest used up its fuel.
    #[error("`{limit}` of {allowed} used up")]
    OutOfFuel {
        /// The limit that set the fuel.
        limit: LimitName,
        /// The value of that limit.
        allowed: u64,
        /// Function names, innermost first.
        trace: Vec<String>,
    },
    /// The instance was not ready in time.
    #[error("not ready within `ready-timeout` of {}", humantime::format_duration(*.0))]
    NotReady(Duration),
    /// The instance did not finish in time after it was asked to stop.
    #[error("did not stop within `stop-timeout` of {}", humantime::format_duration(*.0))]
    StopOverdue(Duration),
    /// The instance worked for one message for too long.
    #[error("worked for one message for longer than `time-per-message` of {}", humantime::format_duration(*allowed))]
    WorkedTooLong {
        /// For how long it worked.
        used: Duration,
        /// For how long it may work.
        allowed: Duration,
    },
    /// The instance had an event, a job or a call in hand for too long.
    #[error("had a message in hand for longer than `handler-timeout` of {}", humantime::format_duration(*allowed))]
    HandlerOverdue {
        /// For how long the oldest message was in hand.
        used: Duration,
        /// For how long a message may be in hand.
        allowed: Duration,
    },
    /// The caller of a request that it had in hand wanted the work for it ended.
    #[error("ended by the caller of request {0}, which it had in hand")]
    Killed(MessageId),
    /// The host panicked.
    #[error("internal error: {0}")]
    Panicked(String),
}

impl Exit {
    /// Returns how a guest ended, judged by wasmtime's result. [`in_sandbox`](Self::in_sandbox) adds the growth that
    /// the guest was refused, and the fuel that it had.
    pub(super) fn of(result: wasmtime::Result<Result<(), ()>>, limits: &Limits) -> Self {
        let error = match result {
            Ok(Ok(())) => return Self::Finished,
            Ok(Err(())) => return Self::Failed(None),
            Err(error) => error,
        };
        if let Some(I32Exit(code)) = error.downcast_ref() {
            return match code {
                0 => Self::Finished,
                code => Self::Failed(Some(format!("exited with code {code}"))),
            };
        }
        if error.is::<NotInstantiated>() {
            return Self::cannot_start(&error, counted(&error, limits));
        }
        let trace = trace(&error);
        match error.downcast_ref::<Trap>() {
            // The sandbox fills in the limit and its value.
            Some(Trap::OutOfFuel) => {
                Self::OutOfFuel { limit: LimitKey::FUEL_PER_MESSAGE.into(), allowed: 0, trace }
            }
            Some(trap) => {
                let text = trap.to_string();
                let cause = text.strip_prefix("wasm trap: ").unwrap_or(&text);
                let limit = (*trap == Trap::StackOverflow).then(|| {
                    let stack = limits.stack;
                    LimitHit::new(LimitKey::STACK, stack, stack)
                });
                Self::Trapped { cause: cause.to_owned(), limit, trace }
            }
            None => {
                let limit = hit_limit(&error, limits);
                let used_up = limit.as_ref().filter(|_| !error.is::<OverLimit>());
                let cause = match used_up {
                    // Instead of wasmtime's text, which knows no limits.
                    Some(hit) => format!("`{}` of {} used up", hit.name, hit.allowed),
                    None if error.is::<GcHeapOutOfMemory<()>>() => NO_ROOM.to_owned(),
                    None if error.is::<ThrownException>() => Uncaught.to_string(),
                    None => harmless(error.root_cause(), 1024),
                };
                Self::Trapped { cause, limit, trace }
            }
        }
    }

    pub(super) fn cannot_start(error: &wasmtime::Error, limit: Option<LimitHit>) -> Self {
        Self::Start { reason: said(error), limit }
    }

    /// Returns the end of an instance that cannot be started, because something granted could not be opened. The end is
    /// [`Hindered`](Self::Hindered) if a later try may succeed.
    pub(super) fn not_opened(error: &wasmtime::Error) -> Self {
        match error.downcast_ref::<io::Error>() {
            Some(cause) if may_come(cause) => Self::Hindered { reason: said(error), limit: None },
            _ => Self::cannot_start(error, None),
        }
    }

    /// Returns the end of an instance during which the host panicked.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(harmless(text.unwrap_or("panic"), 1024))
    }

    /// Adds what the sandbox knows: the fuel that the guest had, and the growth of memory or tables that it was
    /// refused.
    pub(super) fn in_sandbox(self, sandbox: &Sandbox) -> Self {
        match self {
            Self::OutOfFuel { trace, .. } => {
                let (limit, allowed) = sandbox.meter.budget();
                Self::OutOfFuel { limit: limit.into(), allowed, trace }
            }
            // Most programs trap on purpose when they get no memory.
            Self::Trapped { cause, limit: None, trace } if cause.contains(GAVE_UP) || cause == NO_ROOM => {
                Self::Trapped { cause, limit: sandbox.memory.refused.clone(), trace }
            }
            Self::Start { reason, limit: None } => {
                Self::Start { reason, limit: sandbox.memory.refused.clone() }
            }
            exit => exit,
        }
    }

    /// Returns the limit that ended the instance, if one did.
    pub fn limit(&self) -> Option<LimitHit> {
        let late = |limit: LimitKey, used: Duration, allowed: Duration| {
            Some(LimitHit::new(limit, nanoseconds(used), nanoseconds(allowed)))
        };
        match self {
            Self::Trapped { limit, .. } | Self::Start { limit, .. } | Self::Hindered { limit, .. } => {
                limit.clone()
            }
            Self::OutOfFuel { limit, allowed, .. } => Some(LimitHit::new(limit.clone(), *allowed, *allowed)),
            Self::NotReady(allowed) => late(LimitKey::READY_TIMEOUT, *allowed, *allowed),
            Self::StopOverdue(allowed) => late(LimitKey::STOP_TIMEOUT, *allowed, *allowed),
            Self::WorkedTooLong { used, allowed } => late(LimitKey::TIME_PER_MESSAGE, *used, *allowed),
            Self::HandlerOverdue { used, allowed } => late(LimitKey::HANDLER_TIMEOUT, *used, *allowed),
            Self::Finished | Self::Failed(_) | Self::Killed(_) | Self::Panicked(_) => None,
        }
    }
}

/// Returns the text of wasmtime's error and its causes in one line of about 1024 bytes at most, with control characters
/// escaped.
pub(super) fn said(error: &wasmtime::Error) -> String {
    harmless(format_args!("{error:#}"), 1024)
}

/// Marks an error from before the guest ran.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotInstantiated {
    #[error("cannot be instantiated")]
    Any,
    /// The process has no address space or memory mappings left for a memory.
    #[error(
        "cannot be instantiated for want of addresses (raise `ulimit -v` or `vm.max_map_count`, or see `main.address-space`)"
    )]
    NoAddresses,
}

impl NotInstantiated {
    /// Marks the error, unless it is a trap of the guest. Looks into wasmtime's text, because only that tells what
    /// could not be reserved.
    pub(super) fn mark(error: wasmtime::Error) -> wasmtime::Error {
        if error.is::<Trap>() || error.is::<ThrownException>() || error.is::<Uncaught>() {
            return error;
        }
        let mut causes = error.chain().map(ToString::to_string);
        let no_addresses = causes.any(|cause| cause.starts_with("mmap failed to reserve"));
        error.context(if no_addresses { Self::NoAddresses } else { Self::Any })
    }
}

/// Returns the running functions, innermost first and at most 32, with their names, and offsets if the code has them.
fn trace(error: &wasmtime::Error) -> Vec<String> {
    let frames = error.downcast_ref::<wasmtime::WasmBacktrace>().map(wasmtime::WasmBacktrace::frames);
    let function = |frame: &wasmtime::FrameInfo| {
        let name =
            frame.func_name().map(|name| harmless(format_args!("{:#}", rustc_demangle::demangle(name)), 256));
        let number = format!("function {}", frame.func_index());
        match (name, frame.func_offset()) {
            (name, None) => name.unwrap_or(number),
            (None, Some(offset)) => format!("{number} +{offset:#x}"),
            (Some(name), Some(offset)) => format!("{name}, {number} +{offset:#x}"),
        }
    };
    frames.unwrap_or_default().iter().take(32).map(function).collect()
}

/// A guest asked for more than it may have, where no error can be returned to it.
#[derive(Debug, thiserror::Error)]
#[error("asked for {} of `{}`, but {} are allowed", .0.used, .0.name, .0.allowed)]
pub(super) struct OverLimit(pub(super) LimitHit);

/// wasmtime's message when a guest passes more in one call than
/// [`Store::set_hostcall_fuel`](wasmtime::Store::set_hostcall_fuel) allows. The error has no type.
const TOO_MUCH_HANDED_OVER: &str = "fuel allocated for hostcalls has been exhausted";

/// wasmtime's message when a guest has as many handles as
/// [`Store::set_max_component_handles`](wasmtime::Store::set_max_component_handles) allows. The error has no type.
const TOO_MANY_HANDLES: &str = "store handle limit exceeded";

/// Whether a guest has handed over more than one call may carry.
pub(super) fn is_too_much(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains(TOO_MUCH_HANDED_OVER)
}

/// Returns the limit that caused a guest's error, if one did.
fn hit_limit(error: &wasmtime::Error, limits: &Limits) -> Option<LimitHit> {
    let used_up = |limit: LimitName, allowed| LimitHit::new(limit, allowed, allowed);
    let is_full = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(ResourceTableError::Full))
    };
    if let Some(OverLimit(hit)) = error.downcast_ref() {
        Some(hit.clone())
    } else if error.chain().any(is_full) {
        Some(used_up(LimitKey::RESOURCES.into(), limits.resources))
    } else if is_too_much(error) {
        Some(used_up(LimitName::TRANSFER, limits.transfer()))
    } else if error.root_cause().to_string().contains(TOO_MANY_HANDLES) {
        Some(used_up(LimitName::HANDLES, limits.handles()))
    } else {
        None
    }
}

/// Returns the limit on a count that kept a component from being instantiated. Only wasmtime's text tells which.
fn counted(error: &wasmtime::Error, limits: &Limits) -> Option<LimitHit> {
    let text = error.root_cause().to_string();
    let (what, number) = text.strip_prefix("resource limit exceeded: ")?.split_once(" count too high at ")?;
    let fixed = limits.fixed();
    let (name, allowed) = match what {
        "instance" => (LimitName::INSTANCES, fixed.instances),
        "table" => (LimitName::TABLES, fixed.tables),
        "memory" => (LimitName::MEMORIES, fixed.memories),
        _ => return None,
    };
    Some(LimitHit::new(name, number.parse().ok()?, allowed))
}
