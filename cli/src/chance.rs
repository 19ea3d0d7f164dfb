//! Random bytes of the system.

use anyhow::Context;
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn random<const BYTES: usize>() -> anyhow::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let given = getrandom(&mut bytes, GetRandomFlags::empty()).context("the system gives no random bytes")?;
    anyhow::ensure!(given == bytes.len(), "the system gives too few random bytes");
    Ok(bytes)
}
