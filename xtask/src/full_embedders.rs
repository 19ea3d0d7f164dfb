//! What embedders have: the crate as a dependency of a program outside the clone, and the C library, installed in a
//! directory and moved to another. Every block of their pages is compiled as it stands there.

use std::{
    fmt::Write,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use tempfile::TempDir;

use crate::{
    capi, files, guests,
    run::{output, root, run, target_dir},
    setup::{self, CMAKE, VALGRIND},
};

const RUST_PAGE: &str = "docs/embedders.md";

const C_PAGE: &str = "docs/embedders-in-c.md";

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

/// What the compiler adds to programs, so that they look for mistakes while they run.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// What the blocks in C and C++ have around them.
const AROUND: [(&str, &str); 2] = [
    (
        "c",
        "#include <stdio.h>\n#include <string.h>\n#include <weir.h>\nvoid log_json(const char *json);\nstatic weir_error *error;\n",
    ),
    ("cpp", "#include <weir.hpp>\n"),
];

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&CMAKE, &VALGRIND])?;
    in_rust()?;
    in_c()?;
    Ok(Vec::new())
}

/// The code blocks of a page in this language, without those that are to be ignored.
fn blocks(page: &str, language: &str) -> Result<Vec<String>> {
    let (page, mut blocks, mut is_meant) = (files::read(page)?, Vec::new(), false);
    for event in Parser::new(&page) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                let mut words = kind.split(',');
                is_meant = words.next() == Some(language) && !words.any(|word| word == "ignore");
                blocks.extend(is_meant.then(String::new));
            }
            Event::Text(text) if is_meant => blocks.last_mut().into_iter().for_each(|it| it.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => is_meant = false,
            _ => {}
        }
    }
    ensure!(!blocks.is_empty(), "`{page}` has no block in `{language}`");
    Ok(blocks)
}

/// Follows the page in a directory that knows nothing of the clone, runs its first program and the examples, and compiles
/// its other blocks.
fn in_rust() -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let (project, clone) = (directory.path(), root()?);
    let clone = clone.display().to_string();
    let manifest = blocks(RUST_PAGE, "toml")?.join("\n").replace("/path/to/weir", &clone);
    // What else the examples and blocks use. An own workspace: the directory of temporary files may lie in another.
    let manifest = format!(
        "[package]\nname = \"embedder\"\nedition = \"2024\"\n[workspace]\n{manifest}\n[dev-dependencies]\nanyhow = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\ntracing = \"0.1\"\ntracing-subscriber = \"0.3\"\n"
    );
    files::write(&project.join("Cargo.toml"), manifest)?;
    let put = |name: String, text: &str| {
        let path = project.join(name);
        files::make_directory(path.parent().unwrap_or(project))?;
        files::write(&path, text)
    };
    let mut all = "#![allow(dead_code, unused_imports)]\nfn main() {}\n".to_owned();
    for (number, block) in blocks(RUST_PAGE, "rust")?.iter().enumerate() {
        if number == 0 {
            put("src/main.rs".to_owned(), block)?;
            continue;
        }
        put(format!("examples/blocks/block_{number}.rs"), block)?;
        writeln!(all, "mod block_{number};")?;
    }
    put("examples/blocks/main.rs".to_owned(), &all)?;
    for name in ["echo.wasm", "embed.rs", "embed_blocking.rs"] {
        let from = format!("{clone}/host/main/examples/{name}");
        files::copy(Path::new(&from), &project.join("examples").join(name))?;
    }
    // Kept, because its dependencies take long.
    let target = target_dir()?.join("embedder");
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).current_dir(project).env("CARGO_TARGET_DIR", &target);
        cargo
    };
    run(&mut cargo(&["build", "--quiet", "--examples"]))?;
    let printed = output(&mut cargo(&["run", "--quiet"]))?;
    ensure!(printed == FIRST, "the first program prints {printed:?}");
    guests::plugins()?;
    let device = format!("{clone}/examples/device.toml");
    for example in ["embed", "embed_blocking"] {
        let call = ["run", "--quiet", "--example", example, "--", &device, "device.info@1", "memory"];
        run(&mut cargo(&call))?;
    }
    Ok(())
}

fn in_c() -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let tree = tree(&directory)?;
    follow_c_page(directory.path(), &tree)?;
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
    let puppet = config.with_file_name("puppet.wasm");
    expect(&mut valgrind(&tree, &by_pkg_config.join("edges")), &tree, &puppet, "")?;
    expect(&mut Command::new(by_pkg_config.join("edges-sanitized")), &tree, &puppet, "")?;
    for _ in 0..RUNS {
        let mut sanitized = Command::new(by_pkg_config.join("embed-sanitized"));
        expect(&mut sanitized, &tree, &config, EMBED_END)?;
    }
    Ok(())
}

/// Installs the library, and moves it.
fn tree(directory: &TempDir) -> Result<PathBuf> {
    let (installed, moved) = (directory.path().join("installed"), directory.path().join("moved here"));
    capi::capi(&capi::Arguments::release(installed.clone()))?;
    fs::rename(&installed, &moved).context("cannot move the tree")?;
    Ok(moved)
}

/// Runs the commands of the page, but for the first, which has installed the library, and compiles its blocks.
fn follow_c_page(directory: &Path, tree: &Path) -> Result<()> {
    let place = directory.join("page");
    files::make_directory(&place)?;
    let link = |to: &Path, name: &str| symlink(to, place.join(name)).context("cannot make a link");
    link(tree, "weir")?;
    link(&root()?.join("capi"), "capi")?;
    link(&root()?.join("host"), "host")?;
    let commands = blocks(C_PAGE, "console")?.concat();
    let (_, commands) = commands.split_once('\n').context("the page has no commands")?;
    let script: String = commands
        .lines()
        .filter_map(|line| line.strip_prefix("$ ").or(line.strip_prefix("    ")))
        .map(|line| format!("{line}\n"))
        .collect();
    // Whatever the cache has, this compiles anew.
    let mut shell = Command::new("sh");
    shell.args(["-exc", &script]).current_dir(&place).env("HOME", &place).env_remove("XDG_CACHE_HOME");
    let printed = output(&mut shell)?;
    ensure!(printed == FIRST.repeat(3), "the commands of `{C_PAGE}` print {printed:?}");

    for (language, around) in AROUND {
        for (number, block) in blocks(C_PAGE, language)?.iter().enumerate() {
            // Functions stand outside, statements in one.
            let (outside, inside): (Vec<_>, Vec<_>) =
                block.split("\n\n").partition(|part| part.starts_with("static "));
            let types = if language == "c" {
                "weir_main *weir, weir_builder *builder"
            } else {
                "weir::builder &builder"
            };
            let text = format!(
                "{around}{}\nvoid page({types});\nvoid page({types}) {{\n{}\n}}\n",
                outside.join("\n\n"),
                inside.join("\n\n")
            );
            let path = place.join(format!("block-{number}.{language}"));
            files::write(&path, text)?;
            let compiler = if language == "c" { "cc" } else { "c++" };
            let mut compile = Command::new(compiler);
            compile
                .args(["-Wall", "-Werror", "-Wno-unused", "-fsyntax-only", "-I"])
                .arg(tree.join("include"));
            run(compile.arg(&path))?;
        }
    }
    Ok(())
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
    let sanitized = [&SANITIZERS.map(str::to_owned), &shared[..]].concat();
    compile("cc", "embed.c", "embed-sanitized", &sanitized)?;
    compile("cc", "../tests/programs/edges.c", "edges-sanitized", &sanitized)?;
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
