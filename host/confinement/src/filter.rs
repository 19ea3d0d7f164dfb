//! The filter of calls to the kernel, by seccomp.

use std::{collections::BTreeMap, env::consts::ARCH, process};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

/// Memory, locks, time, random numbers, signals within the process, and its end: what a compiler and the libraries of C
/// and Rust use while they compute.
const COMPUTING: [c_long; 19] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// New threads and processes. A library that wants threads hears that there are none, and may do without: rayon, which
/// wasmtime has if the embedder asks for parallel compilation, then works on the thread that calls it.
const THREADS: [c_long; 2] = [libc::SYS_clone, libc::SYS_clone3];

/// What no library does by itself while a process computes: these calls come from an attack, and end the process.
const ATTACKS: [c_long; 8] = [
    libc::SYS_connect,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_socket,
];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Lets this process only compute, and use its three standard descriptors. Ends it for an attack, and refuses other
/// calls as not permitted, since a library may try one and do without it.
pub(crate) fn apply() -> Result<(), Error> {
    // A filter must let what an earlier one is for pass. Of several filters' actions, the kernel takes the strictest.
    let attacks = program(whole(ATTACKS), SeccompAction::Allow, SeccompAction::KillProcess)?;
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let threads = program(whole(THREADS), SeccompAction::Allow, absent)?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let others = program(allowed()?, refused, SeccompAction::Allow)?;
    apply_filter(&attacks)?;
    apply_filter(&threads)?;
    apply_filter(&others)
}

/// These calls, whatever their arguments.
fn whole<const N: usize>(calls: [c_long; N]) -> Rules {
    calls.map(|call| (call, Vec::new())).into()
}

fn program(rules: Rules, other: SeccompAction, listed: SeccompAction) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, other, listed, ARCH.try_into()?)?.try_into()
}

/// The calls that are allowed, some with these arguments only.
fn allowed() -> Result<Rules, BackendError> {
    let own = u64::from(process::id());
    let mut rules = whole(COMPUTING);
    rules.extend(whole(THREADS));
    rules.extend([
        (libc::SYS_read, vec![with([is(0, 0)])?]),
        (libc::SYS_write, vec![with([is(0, 1)])?, with([is(0, 2)])?]),
        // Memory that is neither a file's nor executable.
        (libc::SYS_mmap, vec![with([no_code(), is(4, u64::from(u32::MAX))])?]),
        (libc::SYS_mprotect, vec![with([no_code()])?]),
        // Its own limits, which it can only lower.
        (libc::SYS_prlimit64, vec![with([is(0, 0)])?]),
        // It has one thread, and ends itself by a signal when memory runs out.
        (libc::SYS_tgkill, vec![with([is(0, own)])?]),
        (libc::SYS_tkill, vec![with([is(0, own)])?]),
    ]);
    Ok(rules)
}

fn with<const N: usize>(
    conditions: [Result<SeccompCondition, BackendError>; N],
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// The argument with this index has this value, of 32 bits.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// The third argument asks for no executable memory.
fn no_code() -> Result<SeccompCondition, BackendError> {
    let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
    SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(executable), 0)
}
