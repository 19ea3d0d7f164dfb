//! The C library as its users have it: installed in a directory and moved to another, examples built from there by
//! pkg-config and by CMake, and run with many threads and under valgrind.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{
    capi, files, guests,
    run::{cargo, output, root, run, target_dir},
    setup::{self, CMAKE, VALGRIND},
};

/// What the programs print: all of it, and of `embed` the end.
const FIRST: &str = "hello\n";
const FIRST_CPP: &str = "weir-box\nhello\nnot-found: no such thing\none event\n";
const EMBED_END: &str = "\ndone\n";

/// The configuration that `embed` runs.
const CONFIG: &str = r#"
    [[extension]]
    id = "puppet"
    path = "puppet.wasm"
    fulfills = ["puppet@1"]
    wants = ["platform.info@1"]
    publishes = ["room.>"]
    limits.ready-timeout = "2m"
    limits.request-timeout = "2m"
    [queue.work]
    messages = 10
"#;

/// Runs of the program with many threads.
const RUNS: usize = 10;

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&CMAKE, &VALGRIND])?;
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let tree = tree(&directory)?;
    let config = config(directory.path())?;
    let echo = root()?.join("host/main/examples/echo.wasm");

    let by_pkg_config = by_pkg_config(&tree, &directory.path().join("by-pkg-config"))?;
    let by_cmake = by_cmake(&tree, &directory.path().join("by-cmake"))?;
    for programs in [&by_pkg_config, &by_cmake] {
        let program = |name: &str| programs.join(name);
        for (name, printed) in [("first", FIRST), ("first-static", FIRST), ("first-cpp", FIRST_CPP)] {
            expect(&mut Command::new(program(name)), &tree, &echo, printed)?;
            expect(&mut valgrind(&tree, &program(name)), &tree, &echo, printed)?;
        }
        for _ in 0..RUNS {
            expect(&mut Command::new(program("embed")), &tree, &config, EMBED_END)?;
        }
        expect(&mut valgrind(&tree, &program("embed")), &tree, &config, EMBED_END)?;
        // Whatever the cache has, this compiles anew.
        let own = directory.path().join("own-cache");
        let mut in_child = Command::new(program("embed"));
        in_child.env("XDG_CACHE_HOME", &own);
        expect_with(&mut in_child, &tree, &[&config, &tree.join("libexec").join(capi::HELPER)], EMBED_END)?;
        // The same, in this process.
        fs::remove_dir_all(&own).context("the compiler left no cache")?;
        let mut cold = valgrind(&tree, &program("embed"));
        expect(cold.env("XDG_CACHE_HOME", &own), &tree, &config, EMBED_END)?;
        fs::remove_dir_all(own).context("the library left no cache")?;
    }
    let careless = by_pkg_config.join("edges");
    expect(&mut valgrind(&tree, &careless), &tree, &config.with_file_name("puppet.wasm"), "")?;
    Ok(Vec::new())
}

/// Installs the library, and moves it.
fn tree(directory: &TempDir) -> Result<PathBuf> {
    let (installed, moved) = (directory.path().join("installed"), directory.path().join("moved here"));
    // The whole workspace is chosen, as for all its tests, so that wasmtime is built once.
    run(&mut cargo(["test", "--workspace", "--test", "header", "--no-run"])?)?;
    run(cargo(["build", "--workspace"])?.args(["--bin", capi::HELPER]))?;
    let built = target_dir()?.join("debug");
    capi::install(&built.join("deps"), Some(&built.join(capi::HELPER)), &installed)?;
    fs::rename(&installed, &moved).context("cannot move the tree")?;
    Ok(moved)
}

/// A configuration for `embed`.
fn config(directory: &Path) -> Result<PathBuf> {
    files::copy(&guests::test_guest("puppet")?, &directory.join("puppet.wasm"))?;
    let path = directory.join("device.toml");
    files::write(&path, CONFIG)?;
    Ok(path)
}

fn by_pkg_config(tree: &Path, to: &Path) -> Result<PathBuf> {
    files::make_directory(to)?;
    let examples = root()?.join("capi/examples");
    let flags = |package: &str| -> Result<Vec<String>> {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")).args(["--cflags", "--libs", package]);
        // The tree has a space in its name, which pkg-config escapes for a shell.
        let text = output(&mut pkg_config)?.replace("\\ ", "\0");
        Ok(text.split_whitespace().map(|word| word.replace('\0', " ")).collect())
    };
    let shared = flags("weir")?;
    let compile = |compiler: &str, source: &str, program: &str, flags: &[String]| {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]).arg(examples.join(source));
        run(command.arg("-o").arg(to.join(program)).args(flags))
    };
    compile("cc", "first.c", "first", &shared)?;
    compile("cc", "embed.c", "embed", &shared)?;
    compile("cc", "../tests/programs/edges.c", "edges", &shared)?;
    compile("c++", "first.cpp", "first-cpp", &[&["-std=c++17".to_owned()], &shared[..]].concat())?;
    compile("cc", "first.c", "first-static", &flags("weir-static")?)?;
    Ok(to.to_owned())
}

fn by_cmake(tree: &Path, to: &Path) -> Result<PathBuf> {
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root()?.join("capi/examples")).arg("-B").arg(to);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", tree.display())))?;
    run(Command::new("cmake").arg("--build").arg(to))?;
    Ok(to.to_owned())
}

fn valgrind(tree: &Path, program: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .arg(format!("--suppressions={}", tree.join(capi::SUPPRESSIONS).display()))
        .args(["--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"])
        .arg(program);
    command
}

/// Runs a program, and fails unless its output ends with `end`.
fn expect(command: &mut Command, tree: &Path, argument: &Path, end: &str) -> Result<()> {
    expect_with(command, tree, &[argument], end)
}

fn expect_with(command: &mut Command, tree: &Path, arguments: &[&Path], end: &str) -> Result<()> {
    command.args(arguments).env("LD_LIBRARY_PATH", tree.join("lib"));
    let printed = output(command)?;
    ensure!(printed.ends_with(end), "{command:?} is to print {end:?} at the end, and prints {printed:?}");
    Ok(())
}
