//! Programs in C and C++, compiled with the machine's compilers against the shared library of this build, and run.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use tempfile::TempDir;

/// Reads memory beyond its own as soon as it starts.
const WILD: &str = r#"(component
    (core module $m (memory 1) (func (export "run") (result i32) (i32.load (i32.const 0x7fff0000))))
    (core instance $m (instantiate $m))
    (func $run (result (result)) (canon lift (core func $m "run")))
    (instance $run (export "run" (func $run)))
    (export "wasi:cli/run@0.2.12" (instance $run)))"#;

/// For `examples/embed.c`.
const EMBED: &str = r#"
    [[extension]]
    id = "puppet"
    path = "puppet.wasm"
    fulfills = ["puppet@1"]
    wants = ["platform.info@1"]
    publishes = ["room.>"]
    [queue.work]
    messages = 10
"#;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory with the library under the names that the linker and the loader look for.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<TempDir> = OnceLock::new();
    let directory = LIBRARY.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let built = env::current_exe().unwrap().with_file_name("libweir_capi.so");
        let soname =
            concat!("libweir.so.", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
        for name in ["libweir.so", soname] {
            symlink(&built, directory.path().join(name)).unwrap();
        }
        directory
    });
    directory.path()
}

/// Compiles a program below `capi/`, with all warnings as errors.
fn compile(source: &str, to: &Path) -> PathBuf {
    let (compiler, standard) = match source.ends_with(".cpp") {
        true => ("c++", "-std=c++17"),
        false => ("cc", "-std=gnu11"),
    };
    let program = to.join(Path::new(source).file_stem().unwrap());
    let output = Command::new(compiler)
        .args([standard, "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(here().join("include"))
        .arg(here().join(source))
        .arg(format!("-L{0}", library().display()))
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .args(["-lweir", "-o"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("cannot run `{compiler}`: {error}"));
    assert!(output.status.success(), "{source}:\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, argument: &Path) -> Output {
    Command::new(program).arg(argument).env("XDG_CACHE_HOME", library()).output().unwrap()
}

/// What a program that succeeds prints.
fn printed(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// Whether the machine has a compiler for C++. Rust links with `cc`, and a machine with that need not have this one.
fn has_cpp() -> bool {
    let is_there = Command::new("c++").arg("--version").output().is_ok();
    assert!(is_there || env::var_os("CI").is_none(), "CI has no `c++`");
    if !is_there {
        eprintln!("skipped: there is no `c++`");
    }
    is_there
}

#[test]
fn the_shortest_program_prints_what_an_extension_answers() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("examples/first.c", directory.path());
    let echo = here().join("../host/main/examples/echo.wasm");
    assert_eq!(printed(&run(&program, &echo)), "hello\n");
}

#[test]
fn a_program_in_cpp_serves_calls_and_listens() {
    if !has_cpp() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = compile("examples/first.cpp", directory.path());
    let echo = here().join("../host/main/examples/echo.wasm");
    assert_eq!(printed(&run(&program, &echo)), "weir-box\nhello\nnot-found: no such thing\none event\n");
}

#[test]
fn each_function_is_of_use_in_cpp() {
    if !has_cpp() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = compile("tests/programs/all.cpp", directory.path());
    assert_eq!(printed(&run(&program, &here().join("../host/main/examples/echo.wasm"))), "");
}

#[test]
fn a_program_serves_calls_listens_and_steers_with_many_threads() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("examples/embed.c", directory.path());
    let config = directory.path().join("device.toml");
    fs::write(&config, EMBED).unwrap();
    fs::copy(test_guests::path("puppet"), directory.path().join("puppet.wasm")).unwrap();
    let expected = format!(
        "weir {}\nnot-found, {{\"code\":\"not-found\",\"message\":\"there is no such model\"}}\n\
         room.light from puppet: on, number 1\none from main, delivered 2 times\ndone\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(printed(&run(&program, &config)), expected);
}

#[test]
fn a_careless_program_gets_errors() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("tests/programs/edges.c", directory.path());
    assert_eq!(printed(&run(&program, &test_guests::path("puppet"))), "");
}

#[test]
fn a_fault_of_an_extension_is_its_own_and_one_of_the_program_goes_to_its_handler() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("tests/programs/signals.c", directory.path());
    let wild = directory.path().join("wild.wasm");
    fs::write(&wild, wat::parse_str(WILD).unwrap()).unwrap();
    let output = run(&program, directory.path());
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(output.status.code(), Some(42), "{}: {stdout}{stderr}", output.status);
    let (failure, own) = stdout.split_once('\n').unwrap();
    assert!(failure.starts_with("wild failed: {\"event\":\"failed\",\"extension\":\"wild\""), "{failure}");
    assert!(failure.contains("out of bounds memory access"), "{failure}");
    assert_eq!(own, "the program's own\n");
}

/// `c.rs` follows pointers; everywhere else `unsafe` exports a name.
#[test]
fn one_module_is_unsafe() {
    for file in fs::read_dir(here().join("src")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_other = |line: &&str| line.contains("unsafe") && !line.contains("#[unsafe(no_mangle)]");
        let found: Vec<_> = code.filter(is_other).filter(|line| !line.contains("unsafe_code")).collect();
        match path.file_name().unwrap() == "c.rs" {
            true => assert_eq!(found.len(), 4, "docs/security.md counts them: {found:?}"),
            false => assert!(found.is_empty(), "{path:?}: {found:?}"),
        }
    }
}
