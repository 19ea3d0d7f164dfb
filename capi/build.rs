//! Gives the shared library its versioned name, which programs look for. Before 1.0, each minor version is another.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let part = |name| std::env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let version = match part("MAJOR") {
        major if major == "0" => format!("0.{}", part("MINOR")),
        major => major,
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweir.so.{version}");
}
