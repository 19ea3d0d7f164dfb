//! Follows `docs/first-extension.md` as its reader does: in a directory outside the clone, with the
//! SDK as a packaged crate, and with nothing but the files that the page shows.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    demo::weir::{self, RunningWeir},
    guests,
    run::{cargo, output, root, run, target_dir},
};

/// Builds what the page shows and calls it as the page says.
pub(crate) fn check() -> Result<()> {
    guests::add_target()?;
    let page = fs::read_to_string(root()?.join("docs/first-extension.md")).context("cannot read the page")?;
    let weir = weir::build()?;
    let outside = tempfile::tempdir().context("cannot make a directory")?;
    let sdk = unpack_sdk(outside.path())?;

    let project = outside.path().join("greeter");
    fs::create_dir_all(project.join("src"))?;
    for file in ["Cargo.toml", "src/main.rs", "weir.toml"] {
        fs::write(project.join(file), shown(&page, file)?)?;
    }
    // Until it is published, the packaged crate stands in for the registry's.
    let patch = format!("patch.crates-io.weir-sdk.path={sdk:?}");
    let build = shown(&page, "build")?;
    let build: Vec<&str> = build.split_whitespace().skip(1).collect();
    let cargo_outside = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(arguments).args(["--config", &patch]).current_dir(&project);
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

/// The content of the fenced block that follows the line `<!-- NAME -->`.
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

/// Packages the SDK and unpacks it as a registry would.
fn unpack_sdk(directory: &Path) -> Result<PathBuf> {
    run(&mut cargo(["package", "--package", "weir-sdk", "--no-verify", "--allow-dirty", "--quiet"])?)?;
    let packaged = target_dir()?.join("package");
    let archive = fs::read_dir(&packaged)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("weir-sdk-"))
                && path.extension().is_some_and(|e| e == "crate")
        })
        .with_context(|| format!("no package in `{}`", packaged.display()))?;
    output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(directory))?;
    let stem = archive.file_stem().context("a package without a name")?;
    Ok(directory.join(stem))
}
