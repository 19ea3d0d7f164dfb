//! The same for `wasi:keyvalue@0.2.0-draft2`: what differs from the draft before.

#![expect(clippy::print_stdout, reason = "what it prints is what it has found")]

use std::process::ExitCode;

use keyvalue_guest::draft2::wasi::keyvalue::{
    atomics::{self, Cas, CasError},
    store::{self, Error},
};

fn main() -> ExitCode {
    match all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<(), Error> {
    let bucket = store::open("s")?;
    println!("{}", atomics::increment(&bucket, "n", -5)?);
    println!("{}", atomics::increment(&bucket, "n", 7)?);
    for number in 0..1005 {
        bucket.set(&format!("k{number:04}"), &[])?;
    }
    let first = bucket.list_keys(None)?;
    let second = bucket.list_keys(first.cursor.as_deref())?;
    println!("{} {:?} {} {:?}", first.keys.len(), first.cursor, second.keys.len(), second.cursor);

    let cas = Cas::new(&bucket, "c")?;
    println!("{:?}", cas.current()?);
    println!("{}", swapped(atomics::swap(cas, b"1"))?.is_none());
    let (one, other) = (Cas::new(&bucket, "c")?, Cas::new(&bucket, "c")?);
    println!("{}", swapped(atomics::swap(one, b"2"))?.is_none());
    // It was too late, and gets a handle to the value of now.
    let Some(again) = swapped(atomics::swap(other, b"3"))? else { return Err(Error::AccessDenied) };
    println!("{:?}", again.current()?);
    println!("{}", swapped(atomics::swap(again, b"3"))?.is_none());
    println!("{:?}", bucket.get("c")?);
    Ok(())
}

/// The new handle, if the swap failed.
fn swapped(outcome: Result<(), CasError>) -> Result<Option<Cas>, Error> {
    match outcome {
        Ok(()) => Ok(None),
        Err(CasError::CasFailed(cas)) => Ok(Some(cas)),
        Err(CasError::StoreError(error)) => Err(error),
    }
}
