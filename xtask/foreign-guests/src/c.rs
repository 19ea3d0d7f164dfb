//! Builds the extension and the hook written in C (`test-guests/c`).
//!
//! wit-bindgen-c makes the bindings; Debian's clang and wasi-libc make the code. The linker is the one that
//! rustup ships for `wasm32-wasip2`: it has the adapter from WASI 0.1 to 0.2, and writes a component.
//! `docs/extensions-in-c.md` and `docs/hooks.md` show the same by hand.

use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, wit_parser::Resolve};

use crate::root;

/// The Debian packages to install.
const PACKAGES: &str = "clang lld wasi-libc libclang-rt-14-dev-wasm32";

/// Builds the extension `hello.c` into `out_dir` and returns the path of the component.
///
/// # Errors
/// If `wit/` does not parse, a tool is missing (the error names the packages), or the program does not
/// compile.
pub(crate) fn extension(out_dir: &Path) -> Result<PathBuf> {
    // Not the world `extension`: libc exports `wasi:cli/run` already, as `main`.
    build("hello", &Bindings { wit: "wit", world: "imports", name: "weir" }, out_dir)
}

/// Builds the hook `hook.c` into `out_dir` and returns the path of the component.
///
/// # Errors
/// As [`extension`].
pub(crate) fn hook(out_dir: &Path) -> Result<PathBuf> {
    build("hook", &Bindings { wit: "test-guests/exit.wit", world: "exit", name: "exit" }, out_dir)
}

/// The imports of a program beside those of libc.
struct Bindings {
    /// The directory of the world, from the root of the workspace.
    wit: &'static str,
    world: &'static str,
    /// The stem of the generated files.
    name: &'static str,
}

fn build(program: &str, bindings: &Bindings, out_dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out_dir).with_context(|| format!("cannot make `{}`", out_dir.display()))?;
    bindings.generate(out_dir)?;

    let source = format!("{program}.c");
    let component = out_dir.join(format!("{program}.wasm"));
    let mut linker = OsString::from("-fuse-ld=");
    linker.push(component_linker()?);
    run(Command::new("clang")
        .args(["--target=wasm32-wasi", "-Os", "-Wl,--strip-debug", "-Wall", "-Wextra", "-Werror"])
        .arg(linker)
        .arg("-I")
        .arg(out_dir)
        .arg(root()?.join("test-guests/c").join(&source))
        .args([".c", "_component_type.o"].map(|end| out_dir.join(format!("{}{end}", bindings.name))))
        .arg("-o")
        .arg(&component))
    .with_context(|| format!("cannot build `{source}`, which takes the Debian packages `{PACKAGES}`"))?;
    Ok(component)
}

impl Bindings {
    /// Writes `NAME.h`, `NAME.c` and `NAME_component_type.o`.
    fn generate(&self, out_dir: &Path) -> Result<()> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(root()?.join(self.wit))?;
        let world = resolve.select_world(&[package], Some(self.world))?;
        let options = wit_bindgen_c::Opts { rename_world: Some(self.name.to_owned()), ..Default::default() };
        let mut files = Files::default();
        options.build().generate(&mut resolve, world, &mut files)?;
        for (name, contents) in files.iter() {
            let path = out_dir.join(name);
            fs::write(&path, contents).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        Ok(())
    }
}

/// The linker that rustup installs with rustc for `wasm32-wasip2`.
fn component_linker() -> Result<PathBuf> {
    let libdir = run(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let linker = Path::new(libdir.trim_end()).with_file_name("bin/wasm-component-ld");
    if !linker.exists() {
        bail!("`{}` is missing: use a toolchain installed by rustup", linker.display());
    }
    Ok(linker)
}

/// Runs a tool to its end and returns its output.
fn run(command: &mut Command) -> Result<String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("`{tool}` is not installed"),
        other => other.with_context(|| format!("cannot run `{tool}`"))?,
    };
    if !output.status.success() {
        bail!(
            "`{tool}` failed with {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
