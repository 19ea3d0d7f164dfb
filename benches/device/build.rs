//! What the linker is to do for a program that is built for size.

use std::env;

fn main() {
    // They are a tenth of its file, and are read at each start.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // What is used lies side by side, so that the pages between are never in memory.
    let used = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/used.ld");
    if env::var("OPT_LEVEL").is_ok_and(|level| level == "s") {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{used}");
    }
    println!("cargo:rerun-if-changed={used}");
    println!("cargo:rerun-if-changed=build.rs");
}
