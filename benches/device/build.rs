//! What the linker is to do for a program that is built for size.

fn main() {
    // They are a tenth of its file, and are read at each start.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    println!("cargo:rerun-if-changed=build.rs");
}
