//! Follows `docs/first-extension.md` as its reader does: outside the clone, with the published crates
//! packaged, and with only the files that the page shows.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    demo::weir::{self, RunningWeir},
    guests,
    run::{cargo, output, root, run, target_dir},
};

/// The SDK and its dependency of this repository, as published.
const PUBLISHED: [&str; 2] = ["weir-names", "weir-sdk"];

/// Builds what the page shows, and calls it as the page says.
pub(crate) fn check() -> Result<()> {
    guests::add_target()?;
    let page = fs::read_to_string(root()?.join("docs/first-extension.md")).context("cannot read the page")?;
    let weir = weir::build()?;
    let outside = tempfile::tempdir().context("cannot make a directory")?;
    let patches = unpack_published(outside.path())?;

    let project = outside.path().join("greeter");
    fs::create_dir_all(project.join("src"))?;
    for file in ["Cargo.toml", "src/main.rs", "weir.toml"] {
        fs::write(project.join(file), shown(&page, file)?)?;
    }
    let build = shown(&page, "build")?;
    let build: Vec<&str> = build.split_whitespace().skip(1).collect();
    let cargo_outside = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(arguments).args(&patches).current_dir(&project);
        run(command.env("CARGO_TARGET_DIR", project.join("target")))
    };
    cargo_outside(&build)?;
    cargo_outside(&["test"])?;

    let mut main = RunningWeir::start(&weir, &project.join("weir.toml"))?;
    let call = shown(&page, "call")?;
    let words: Vec<&str> = call.split_whitespace().skip(1).map(|word| word.trim_matches('\'')).collect();
    let answer = main.run(&words)?;
    let expected = shown(&page, "answer")?;
    ensure!(answer.trim() == expected.trim(), "answered `{answer}`, and the page says `{expected}`");
    main.shut_down()
}

/// The fenced block after the line `<!-- NAME -->`.
fn shown(page: &str, name: &str) -> Result<String> {
    let (_, rest) = page
        .split_once(&format!("<!-- {name} -->\n"))
        .with_context(|| format!("the page shows no `{name}`"))?;
    let block = rest.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    let (content, _) = block
        .and_then(|rest| rest.split_once("```"))
        .with_context(|| format!("no block follows `{name}`"))?;
    Ok(content.to_owned())
}

/// Packages the published crates and unpacks them, as a registry would. Returns the Cargo options that put
/// them in place of the registry's.
fn unpack_published(directory: &Path) -> Result<Vec<String>> {
    let mut package = cargo(["package", "--no-verify", "--allow-dirty", "--quiet"])?;
    run(package.args(PUBLISHED.map(|name| format!("--package={name}"))))?;
    let packaged = target_dir()?.join("package");
    let mut patches = Vec::new();
    for name in PUBLISHED {
        let stem = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let archive = packaged.join(format!("{stem}.crate"));
        output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(directory))?;
        patches.push(format!("--config=patch.crates-io.{name}.path={:?}", directory.join(stem)));
    }
    Ok(patches)
}
