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

/// Builds the library, and installs it.
pub(crate) fn capi(arguments: &Arguments) -> Result<()> {
    let built = build(&arguments.profile, arguments.no_compiler)?;
    install(&built, &arguments.prefix)?;
    println!("installed in {}", arguments.prefix.display());
    Ok(())
}

/// Builds the shared and the static library; returns their directory.
fn build(profile: &str, no_compiler: bool) -> Result<PathBuf> {
    let mut build = cargo(["rustc", "--package", "weir-capi", "--lib", "--profile", profile])?;
    build.args(["--crate-type", "cdylib,staticlib"]);
    if no_compiler {
        build.args(["--no-default-features", "--features", "http,sockets,store"]);
    }
    run(&mut build)?;
    Ok(target_dir()?.join(if profile == "dev" { "debug" } else { profile }))
}

/// Installs libraries of `built` below `prefix`.
pub(crate) fn install(built: &Path, prefix: &Path) -> Result<()> {
    let (version, soname) = (env!("CARGO_PKG_VERSION"), soname());
    let capi = root()?.join("capi");
    for directory in ["include", "lib/pkgconfig", "lib/cmake/weir"] {
        let directory = prefix.join(directory);
        files::make_directory(&directory)?;
    }
    for header in HEADERS {
        copy(&capi.join("include").join(header), &prefix.join("include").join(header))?;
    }
    let library = prefix.join("lib");
    let file = format!("libweir.so.{version}");
    copy(&built.join("libweir_capi.a"), &library.join("libweir.a"))?;
    copy(&built.join("libweir_capi.so"), &library.join(&file))?;
    let names = format!("libweir.so.{soname}");
    link(&file, &library.join(&names))?;
    link(&names, &library.join("libweir.so"))?;
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
