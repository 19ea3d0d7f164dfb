//! A limit that ended a guest, as an error on its way out.

use wasmtime::component::ResourceTableError;
use weir_config::{LimitHit, LimitName, Limits};

/// A guest asked for more than it may have, where no error can be returned to it.
#[derive(Debug, thiserror::Error)]
#[error("asked for {} of `{}`, but {} are allowed", .0.used, .0.name, .0.allowed)]
pub(super) struct OverLimit(pub(super) LimitHit);

/// wasmtime's message when a guest passes more in one call than
/// [`Store::set_hostcall_fuel`](wasmtime::Store::set_hostcall_fuel) allows. The error has no type.
const TOO_MUCH_HANDED_OVER: &str = "fuel allocated for hostcalls has been exhausted";

/// Whether a guest has handed over more than one call may carry.
pub(super) fn is_too_much(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains(TOO_MUCH_HANDED_OVER)
}

/// The limit that caused a guest's error.
pub(super) fn hit(error: &wasmtime::Error, limits: &Limits) -> Option<LimitHit> {
    let used_up = |limit: LimitName, allowed| LimitHit::new(limit, allowed, allowed);
    let is_full = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(ResourceTableError::Full))
    };
    if let Some(OverLimit(hit)) = error.downcast_ref() {
        Some(hit.clone())
    } else if error.chain().any(is_full) {
        Some(used_up(LimitName::RESOURCES, limits.fixed().resources))
    } else if is_too_much(error) {
        Some(used_up(LimitName::TRANSFER, limits.transfer()))
    } else {
        None
    }
}

/// The limit on a count that kept a component from being instantiated. wasmtime tells it only in words.
pub(super) fn counted(error: &wasmtime::Error, limits: &Limits) -> Option<LimitHit> {
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
