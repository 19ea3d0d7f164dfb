//! Bytes as the source of an extension: its file, a signed artifact, an entry of the cache.

mod artifact;
mod cache;

use std::error::Error;

use weir_host::{
    MainConfig,
    component::{self, Compilation, LoadFault},
};

use crate::{scratch, stage::extension, world};

/// Bytes of a file. Instrumented code compiles slowly.
const FILE_SIZE: u64 = 16 * 1024;

/// Bytes of an artifact: more than any here has.
const ARTIFACT_SIZE: u64 = 1 << 20;

/// Loads the input. Its first byte says as what.
///
/// `A` and `B` stand for an artifact signed by a trusted and by another key, `C` for an entry of the cache,
/// each changed by the rest. All other input is the file itself. Main never runs changed bytes, and refuses
/// them in one line that is fit for a terminal and names the file.
pub fn loader(data: &[u8]) {
    match data.split_first() {
        Some((b'A', changes)) => artifact::check_trusted(changes),
        Some((b'B', changes)) => artifact::check_other(changes),
        Some((b'C', changes)) => cache::start_changed(changes),
        _ => check_file(data),
    }
}

fn check_file(data: &[u8]) {
    match check(data, FILE_SIZE) {
        Ok(()) => assert!(data.starts_with(b"\0asm\x0d\0\x01\0"), "it is no component"),
        Err(LoadFault::Compiler(fault)) => panic!("the compiler failed: {fault}"),
        Err(LoadFault::CutOff) => panic!("the compiler panicked"),
        Err(_) => {}
    }
}

/// Loads and inspects a file as Main would, without running it.
fn check(data: &[u8], file_size: u64) -> Result<(), LoadFault> {
    let dir = scratch();
    let mut extension = extension(&dir, "fuzz", data);
    extension.limits.file_size = file_size;
    let mut main = MainConfig::default();
    main.plugin_dir = Some(dir.path().to_owned());
    main.trusted_keys = vec![artifact::trusted_key()];
    if let Some(path) = extension.component.path()
        && let Err(refused) = component::inspect(path)
    {
        check_text(&refused);
    }
    component::check(&main, &extension, &Compilation::InProcess).map_err(|refused| {
        check_text(&refused);
        refused.fault
    })
}

fn check_text(error: &dyn Error) {
    let mut text = error.to_string();
    assert!(text.contains("fuzz.wasm"), "the file is not named: {text}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&error.to_string());
        cause = error.source();
    }
    assert!(!text.contains(char::is_control), "not fit for a terminal: {text:?}");
}

/// Overwrites bytes: of each five, four are the place and one is the byte. If one to four are left, the first
/// counts bytes to cut off.
fn changed(bytes: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let (changes, cut) = changes.as_chunks::<5>();
    for [a, b, c, d, byte] in changes {
        let place = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).unwrap() % bytes.len();
        bytes[place] = *byte;
    }
    let cut = cut.first().map_or(0, |cut| usize::from(*cut));
    bytes.truncate(bytes.len() - cut);
    bytes
}

/// A component that compiles to little code and waits for the end.
fn small_component() -> Vec<u8> {
    world::component_of(
        r#"(module
            (import "weir:iec/channel@0.1.0" "receive" (func $receive (param i32)))
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (func (export "wasi:cli/run@0.2.12#run") (result i32)
                (call $receive (i32.const 512))
                (i32.const 0)))"#,
    )
}
