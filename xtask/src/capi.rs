//! The C library: built, and installed with its headers for pkg-config and CMake.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    files,
    run::{cargo, root, run, target_dir},
};

/// Files of the tree that name versions: the template below `capi/install`, and the place.
const TEMPLATES: [(&str, &str); 4] = [
    ("weir.pc.in", "lib/pkgconfig/weir.pc"),
    ("weir.pc.in", "lib/pkgconfig/weir-static.pc"),
    ("weirConfig.cmake.in", "lib/cmake/weir/weirConfig.cmake"),
    ("weirConfigVersion.cmake.in", "lib/cmake/weir/weirConfigVersion.cmake"),
];

/// Compiles components in a process of its own.
pub(crate) const HELPER: &str = "weir-compile-helper";

/// What valgrind is not to report.
pub(crate) const SUPPRESSIONS: &str = "share/weir/valgrind.supp";

const HEADERS: [&str; 2] = ["weir.h", "weir.hpp"];

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where `include` and `lib` are to be. The tree may be moved later.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// The profile of Cargo that it is built in.
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// Leave Cranelift out: then only artifacts run that were compiled elsewhere.
    #[arg(long)]
    no_compiler: bool,
}

impl Arguments {
    /// What the page for embedders in C says.
    pub(crate) fn release(prefix: PathBuf) -> Self {
        Self { prefix, profile: "release".to_owned(), no_compiler: false }
    }
}

/// Builds the library, and installs it.
pub(crate) fn capi(arguments: &Arguments) -> Result<()> {
    let (built, helper) = build(&arguments.profile, arguments.no_compiler)?;
    install(&built, helper.as_deref(), &arguments.prefix)?;
    println!("installed in {}", arguments.prefix.display());
    Ok(())
}

/// Builds the shared and the static library, and the program that compiles for them unless they have no compiler. Returns
/// the directory of the libraries, and the program.
fn build(profile: &str, no_compiler: bool) -> Result<(PathBuf, Option<PathBuf>)> {
    let mut build = cargo(["rustc", "--package", "weir-capi", "--lib", "--profile", profile])?;
    build.args(["--crate-type", "cdylib,staticlib"]);
    if no_compiler {
        build.args(["--no-default-features", "--features", "http,sockets,store"]);
    }
    run(&mut build)?;
    let built = target_dir()?.join(if profile == "dev" { "debug" } else { profile });
    let helper = (!no_compiler).then(|| built.join(HELPER));
    if helper.is_some() {
        // The library is chosen, too, so that both have the same features and nothing is built twice.
        let packages = ["build", "--package", "weir-capi", "--package", "weir-host", "--profile", profile];
        run(cargo(packages)?.args(["--bin", HELPER]))?;
    }
    Ok((built, helper))
}

/// Installs libraries of `built`, and the program that compiles for them, below `prefix`.
fn install(built: &Path, helper: Option<&Path>, prefix: &Path) -> Result<()> {
    let (version, soname) = (env!("CARGO_PKG_VERSION"), soname());
    let capi = root()?.join("capi");
    for directory in ["include", "lib/pkgconfig", "lib/cmake/weir", "share/weir"] {
        let directory = prefix.join(directory);
        files::make_directory(&directory)?;
    }
    for header in HEADERS {
        copy(&capi.join("include").join(header), &prefix.join("include").join(header))?;
    }
    copy(&capi.join("install/valgrind.supp"), &prefix.join(SUPPRESSIONS))?;
    let library = prefix.join("lib");
    let file = format!("libweir.so.{version}");
    copy(&built.join("libweir_capi.a"), &library.join("libweir.a"))?;
    copy(&built.join("libweir_capi.so"), &library.join(&file))?;
    let names = format!("libweir.so.{soname}");
    link(&file, &library.join(&names))?;
    link(&names, &library.join("libweir.so"))?;
    let programs = prefix.join("libexec");
    match helper {
        Some(helper) => {
            files::make_directory(&programs)?;
            copy(helper, &programs.join(HELPER))?;
        }
        // That of an earlier installation is of another version.
        None => remove(&programs.join(HELPER))?,
    }
    for (template, place) in TEMPLATES {
        let text = files::read(capi.join("install").join(template))?;
        let text = text.replace("@VERSION@", version).replace("@SONAME@", &soname);
        let (name, libraries) = match place.contains("static") {
            true => ("weir-static", "${libdir}/libweir.a -lgcc_s -lpthread -lm -ldl"),
            false => ("weir", "-L${libdir} -lweir"),
        };
        let text = text.replace("@NAME@", name).replace("@LIBS@", libraries);
        let place = prefix.join(place);
        files::write(&place, text)?;
    }
    Ok(())
}

/// The version that programs look for, as `capi/build.rs` has it.
fn soname() -> String {
    match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")).to_owned(),
        major => major.to_owned(),
    }
}

/// Copies a file. An older one is removed and not written to, so that a running program keeps the file that it has.
fn copy(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    files::copy(from, to)
}

fn link(target: &str, link: &Path) -> Result<()> {
    remove(link)?;
    symlink(target, link).with_context(|| format!("cannot make the link `{}`", link.display()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot replace `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
