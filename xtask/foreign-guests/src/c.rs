//! Builds the extension and the hook written in C (`tests/test-guests/c`), and what stands on the SDK for C (`guest-sdk/c`).
//!
//! wit-bindgen-c makes the bindings; Debian's clang and wasi-libc make the code. The linker is the one that
//! rustup ships for `wasm32-wasip2`: it has the adapter from WASI 0.1 to 0.2, and writes a component.
//! `docs/extensions-in-c.md` and `docs/hooks.md` show the same by hand.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, wit_parser::Resolve};

use crate::root;

/// The world of an extension. Not `extension`: libc exports `wasi:cli/run` already, as `main`.
const EXTENSION: Bindings = Bindings { wit: "wit", world: "imports", name: "weir" };

/// The stack below all data, so that an overflow is a trap; and its size. As `guest-sdk/c/CMakeLists.txt` has them.
const STACK: [&str; 2] = ["-Wl,--stack-first", "-Wl,-z,stack-size=65536"];

/// The Debian packages to install.
const PACKAGES: &str = "clang lld wasi-libc libclang-rt-14-dev-wasm32";

/// Builds the extension `hello.c` into `out_dir` and returns the path of the component.
///
/// # Errors
/// If `wit/` does not parse, a tool is missing (the error names the packages), or the program does not
/// compile.
pub(crate) fn extension(out_dir: &Path) -> Result<PathBuf> {
    build("hello", &EXTENSION, out_dir)
}

/// Builds the hook `hook.c` into `out_dir` and returns the path of the component.
///
/// # Errors
/// As [`extension`].
pub(crate) fn hook(out_dir: &Path) -> Result<PathBuf> {
    build("hook", &Bindings { wit: "tests/test-guests/exit.wit", world: "exit", name: "exit" }, out_dir)
}

/// Builds the conformance guest with the SDK for C into `out_dir`, and returns the path of the component.
///
/// # Errors
/// As [`extension`].
pub(crate) fn conformance(out_dir: &Path) -> Result<PathBuf> {
    let root = root()?;
    let sources = [
        "tests/conformance/c/conformance.c",
        "guest-sdk/c/weir_sdk.c",
        "guest-sdk/c/weir_text.c",
        "guest-sdk/c/weir_start.c",
    ];
    let sources = sources.map(|source| root.join(source));
    let mut include = OsString::from("-I");
    include.push(root.join("guest-sdk/c"));
    // The SDK has a start of its own.
    let component =
        compile("conformance", &sources, &["-nostartfiles".into(), include], &EXTENSION, out_dir)?;
    let mut file = File::options().append(true).open(&component)?;
    for (section, path) in [("weir:manifest", "c/manifest.json"), ("weir:contracts", "contracts.jsonl")] {
        let path = root.join("tests/conformance").join(path);
        let contents = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        file.write_all(&custom_section(section, &contents)?)?;
    }
    Ok(component)
}

/// Builds the native tests of the SDK for C in `out_dir`, and runs them: with clang as users do, and with gcc and its
/// sanitizers, which find leaks. Returns `out_dir`.
///
/// # Errors
/// If a tool is missing, or a test does not compile or fails.
pub(crate) fn native_tests(out_dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out_dir).with_context(|| format!("cannot make `{}`", out_dir.display()))?;
    EXTENSION.generate(out_dir)?;
    let sdk = root()?.join("guest-sdk/c");
    for (compiler, flags) in
        [("clang", &[][..]), ("gcc", &["-fsanitize=address,undefined", "-fno-sanitize-recover"])]
    {
        for (extension, test) in
            [("example/greeter.c", "example/greeter_test.c"), ("tests/probe.c", "tests/harness_test.c")]
        {
            let compile = || {
                let mut command = Command::new(compiler);
                command.args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(flags);
                command.arg("-I").arg(&sdk).arg("-I").arg(out_dir);
                command
            };
            let (object, program) = (out_dir.join("extension.o"), out_dir.join("native-test"));
            run(compile()
                .arg("-Dmain=extension_main")
                .arg("-c")
                .arg(sdk.join(extension))
                .arg("-o")
                .arg(&object))?;
            let sources = [test, "weir_sdk.c", "weir_text.c", "weir_test.c", "weir_memory.c"]
                .map(|source| sdk.join(source));
            run(compile().args(sources).arg(&object).arg("-o").arg(&program))?;
            run(&mut Command::new(&program)).with_context(|| format!("`{test}` fails with `{compiler}`"))?;
        }
    }
    Ok(out_dir.to_owned())
}

/// A custom section, as it stands in a component.
fn custom_section(name: &str, contents: &[u8]) -> Result<Vec<u8>> {
    let name = [&[u8::try_from(name.len())?], name.as_bytes()].concat();
    // A length of five bytes, of seven bits each, is as good as a short one.
    let length = u32::try_from(name.len() + contents.len())?;
    let [a, b, c, d, e] = [0, 7, 14, 21, 28].map(|shift| length >> shift & 0x7f);
    let length = [a | 0x80, b | 0x80, c | 0x80, d | 0x80, e].map(u32::to_le_bytes).map(|[low, ..]| low);
    Ok([&[0], &length[..], &name, contents].concat())
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
    let source = root()?.join("tests/test-guests/c").join(format!("{program}.c"));
    compile(program, &[source], &[], bindings, out_dir)
}

fn compile(
    program: &str,
    sources: &[PathBuf],
    flags: &[OsString],
    bindings: &Bindings,
    out_dir: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(out_dir).with_context(|| format!("cannot make `{}`", out_dir.display()))?;
    bindings.generate(out_dir)?;

    let component = out_dir.join(format!("{program}.wasm"));
    let mut linker = OsString::from("-fuse-ld=");
    linker.push(component_linker()?);
    run(Command::new("clang")
        .args(["--target=wasm32-wasi", "-Os", "-Wl,--strip-debug", "-Wall", "-Wextra", "-Werror"])
        .args(STACK)
        .arg(linker)
        .arg("-I")
        .arg(out_dir)
        .args(flags)
        .args(sources)
        .args([".c", "_component_type.o"].map(|end| out_dir.join(format!("{}{end}", bindings.name))))
        .arg("-o")
        .arg(&component))
    .with_context(|| format!("cannot build `{program}`, which takes the Debian packages `{PACKAGES}`"))?;
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
