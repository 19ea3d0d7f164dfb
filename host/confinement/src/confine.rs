//! The restrictions of a process, in the order in which it can take them on.

use std::{fs, io};

use caps::{CapSet, Capability};
use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope};
use nix::{
    sys::prctl::set_no_new_privs,
    unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid},
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};

use crate::missing::{Missing, Restriction};

/// The user and the group `nobody`, which own no files. Other programs may run as them, too.
const NOBODY: u32 = 65_534;

/// The newest version of Landlock that the crate knows. An older kernel restricts what it can.
const LANDLOCK: ABI = ABI::V10;

/// Confines this process for good: it computes, reads its standard input, and writes its standard output and error. It
/// must have only one thread, the one that calls.
///
/// The process lives no longer than the thread that started it. It is the first to go if the machine runs out of memory,
/// and other processes of its user cannot read its memory. If it was root, it becomes the user `nobody`, unless its
/// starter could then not end it. Restrictions that the machine cannot give are returned.
///
/// # Errors
///
/// Fails if the process has a second thread, or the kernel refuses what every kernel has.
pub fn confine() -> io::Result<Missing> {
    let mut missing = Missing::default();
    // Seccomp, Landlock and capabilities are each thread's own. Without `/proc` it is not known, and the caller's promise
    // must do.
    if fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::other("it has more than one thread: compile before any other is started"));
    }
    // Main's threads block signals, and a process inherits that from the thread that starts it.
    let _unblocked = nix::sys::signal::SigSet::all().thread_unblock();
    // Files of `/proc` belong to root once the process cannot be dumped.
    let _unasked = fs::write("/proc/self/oom_score_adj", "1000");
    // As a rule the starter has the same capabilities. It needs this one to end a process of another user.
    let can_be_ended = caps::has_cap(None, CapSet::Effective, Capability::CAP_KILL).unwrap_or(false);
    if geteuid().is_root() && !(can_be_ended && become_nobody().is_ok()) {
        missing.add(Restriction::User);
    }
    if drop_capabilities().is_err() {
        missing.add(Restriction::Capabilities);
    }
    // These two come after the change of the user, which undoes them.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| at("end with its starter", error))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| at("hide its memory", error))?;
    set_no_new_privs().map_err(|error| at("give up new privileges", error))?;
    // An error means that another rule refuses Landlock.
    if !matches!(landlock(), Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced)) {
        missing.add(Restriction::Landlock);
    }
    // Without new descriptors there are neither files nor connections. This comes after Landlock, which takes one.
    for resource in [Resource::Core, Resource::Fsize, Resource::Nofile, Resource::Nproc] {
        limit(resource, 0).map_err(|error| at("lower its limits", error))?;
    }
    if !is_filtered() {
        missing.add(Restriction::Seccomp);
    }
    Ok(missing)
}

/// Sets a limit of this process for good, unless a lower one is set already. A confined process may do this, too.
///
/// # Errors
///
/// Fails if the kernel refuses.
pub fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    Ok(())
}

/// Names the step that failed.
fn at(step: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("it cannot {step}: {error}"))
}

/// Clears all sets of capabilities. A set that is empty already takes no call that a policy could forbid.
fn drop_capabilities() -> Result<(), caps::errors::CapsError> {
    // The effective and the ambient set lie within the permitted one, and go with it.
    for set in [CapSet::Permitted, CapSet::Inheritable] {
        if !caps::read(None, set)?.is_empty() {
            caps::clear(None, set)?;
        }
    }
    Ok(())
}

fn become_nobody() -> nix::Result<()> {
    setgroups(&[])?;
    setgid(Gid::from_raw(NOBODY))?;
    setuid(Uid::from_raw(NOBODY))
}

/// Allows nothing of what Landlock can refuse.
fn landlock() -> Result<RulesetStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?;
    Ok(ruleset.restrict_self()?.ruleset)
}

#[cfg(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86_64"))]
fn is_filtered() -> bool {
    crate::filter::apply().is_ok()
}

/// The crate that makes filters does not know this processor.
#[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86_64")))]
fn is_filtered() -> bool {
    false
}
