//! A project: its directory, its `weir.toml`, and the tools of its language.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use weir_host::{Config, hooks::HooksConfig};

use super::python;
use crate::configuration;

/// The component's part of a path below Cargo's target directory.
pub(super) const TARGET: &str = "wasm32-wasip2";

const FILE: &str = "weir.toml";

/// For what these commands leave: logs and measurements.
const OWN_DIRECTORY: &str = ".weir";

pub(super) struct Project {
    /// Absolute.
    pub(super) dir: PathBuf,
    pub(super) config: Config,
    pub(super) tools: Tools,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tools {
    Cargo,
    Npm,
    Python,
    Go,
    /// Components are built by other means.
    None,
}

impl Project {
    pub(super) fn load(dir: &Path) -> anyhow::Result<Self> {
        let shown = dir.display();
        let dir = fs::canonicalize(dir).with_context(|| format!("cannot open `{shown}`"))?;
        if !dir.join(FILE).is_file() {
            bail!("there is no `{FILE}` in `{shown}`; `weir new NAME` makes a project");
        }
        let config = configuration::load(&dir.join(FILE))?;
        let has = |file: &str| dir.join(file).is_file();
        let tools = match () {
            () if has("Cargo.toml") => Tools::Cargo,
            () if has("package.json") => Tools::Npm,
            () if has("go.mod") => Tools::Go,
            () if has("main.py") || has("app.py") => Tools::Python,
            () => Tools::None,
        };
        Ok(Self { dir, config, tools })
    }

    pub(super) fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// The files of the extensions, each once.
    pub(super) fn components(&self) -> Vec<&Path> {
        let paths = self.config.extensions.iter().filter_map(|extension| extension.component.path());
        paths.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The names of the directories of hooks, and where they are.
    pub(super) fn hooks(&self) -> Vec<(&str, &Path)> {
        let hooks = self.config.section::<HooksConfig>().into_iter().flat_map(|hooks| &hooks.0);
        hooks.map(|(name, hooks)| (name.as_str(), hooks.dir.as_path())).collect()
    }

    /// Where components are, as far as Cargo builds them. `None`: the program runs outside Main.
    pub(super) fn place_of_components(&self) -> Option<&Path> {
        let hooks = self.hooks().into_iter().map(|(_, dir)| dir);
        self.components().into_iter().chain(hooks).next()
    }

    /// The program itself, if it runs outside Main.
    pub(super) fn program(&self) -> Option<Command> {
        if self.place_of_components().is_some() {
            return None;
        }
        match self.tools {
            Tools::Cargo => Some(self.command("cargo", &["run", "--quiet"])),
            Tools::Npm => Some(self.command("npm", &["start", "--silent"])),
            Tools::Python => Some(self.command("python3", &["main.py"])),
            Tools::Go => Some(self.command("go", &["run", "."])),
            Tools::None => None,
        }
    }

    /// The tests that run without being named.
    pub(super) fn tests(&self) -> Option<Command> {
        match self.tools {
            Tools::Cargo => Some(self.command("cargo", &["test"])),
            Tools::Npm => Some(self.command("npm", &["test", "--silent"])),
            Tools::Python if self.place_of_components().is_some() => {
                let python = python::tool(self, "python");
                Some(self.command(&python.to_string_lossy(), &["-m", "pytest", "-q"]))
            }
            Tools::Python => Some(self.command("python3", &["-m", "unittest"])),
            Tools::Go => Some(self.command("go", &["test", "-v", "./..."])),
            Tools::None => None,
        }
    }

    /// A command in the directory of the project, without stdin.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// A path below the directory for what these commands leave.
    pub(super) fn own(&self, file: &str) -> anyhow::Result<PathBuf> {
        let directory = self.dir.join(OWN_DIRECTORY);
        fs::create_dir_all(&directory).with_context(|| format!("cannot make `{}`", directory.display()))?;
        Ok(directory.join(file))
    }

    /// A path as a person in the directory would write it.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }
}

/// Stderr, for the output of a tool.
pub(super) fn to_stderr() -> anyhow::Result<Stdio> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    Ok(stderr.context("cannot use stderr for another program")?.into())
}
