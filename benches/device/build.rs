//! Has the linker pack the relocations of the program, which are a tenth of its file and are read at each start.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    println!("cargo:rerun-if-changed=build.rs");
}
