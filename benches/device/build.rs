//! Linker options for a program built for size.

fn main() {
    // Relocations are a tenth of its file, and are read at each start.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    println!("cargo:rerun-if-changed=build.rs");
}
