//! Confines the process that compiles: it reads its standard input, writes its standard output and error, and the kernel
//! refuses all else.
//!
//! Knows nothing of components, and of what is compiled how.

mod confine;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86_64"))]
mod filter;
mod missing;

pub use self::{
    confine::{confine, limit},
    missing::Missing,
};
