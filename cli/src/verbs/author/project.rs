//! A project: its directory, its `weir.toml`, and the tools of its language.

use std::{
    cell::LazyCell,
    collections::BTreeSet,
    env, fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use weir_host::{Config, config::DirMode, hooks::HooksConfig};

use super::sources;
use crate::features;

/// The target of components, and so a directory in the path of each component that Cargo makes.
pub(super) const TARGET: &str = "wasm32-wasip2";

const FILE: &str = "weir.toml";

/// The directory where the tools of most languages put what they make.
const BUILT: &str = "dist";

/// The directory of Python's virtual environment, if none is active.
pub(super) const PYTHON_ENVIRONMENT: &str = ".venv";

/// The directory in a project for files of these commands: logs, measurements, and what the build of Go makes.
const OWN_DIRECTORY: &str = ".weir";

pub(super) struct Project {
    /// The absolute path of the project's directory.
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
    Make,
    /// No tool is known: the author builds components by other means.
    None,
}

impl Project {
    pub(super) fn load(dir: &Path) -> anyhow::Result<Self> {
        let shown = dir.display();
        let dir = fs::canonicalize(dir).with_context(|| format!("cannot open `{shown}`"))?;
        if !dir.join(FILE).is_file() {
            bail!("there is no `{FILE}` in `{shown}`; `weir new NAME` makes a project");
        }
        let config = features::load(&dir.join(FILE))?;
        let has = |file: &str| dir.join(file).is_file();
        let tools = match () {
            () if has("Cargo.toml") => Tools::Cargo,
            () if has("package.json") => Tools::Npm,
            () if has("go.mod") => Tools::Go,
            () if has("main.py") || has("app.py") => Tools::Python,
            () if has("Makefile") => Tools::Make,
            () => Tools::None,
        };
        Ok(Self { dir, config, tools })
    }

    pub(super) fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// Returns the components of the extensions, each once.
    pub(super) fn components(&self) -> Vec<&Path> {
        let paths = self.config.extensions.iter().filter_map(|extension| extension.component.path());
        paths.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the component that a build of this project makes, or `None` if the configuration names no component.
    ///
    /// # Errors
    /// If that is not clear, since a component of another project must not be overwritten.
    pub(super) fn own_component(&self) -> anyhow::Result<Option<&Path>> {
        let components = self.components();
        // Cargo puts what it makes of all packages of a workspace into one directory, so only names tell them apart.
        let names = LazyCell::new(|| sources::component_names(self));
        let is_made_here = |path: &&Path| {
            let path = real(path);
            path.starts_with(&self.dir)
                || sources::component_name(&path).is_some_and(|name| names.contains(&name))
        };
        let own = components.iter().copied().filter(|path| self.is_own(path));
        let own: Vec<_> = own.filter(is_made_here).collect();
        let built = self.dir.join(BUILT);
        let in_place: Vec<_> = own.iter().copied().filter(|path| path.starts_with(&built)).collect();
        match (&own[..], &in_place[..]) {
            _ if components.is_empty() => Ok(None),
            ([own], _) | (_, [own]) => Ok(Some(*own)),
            _ => {
                let named: Vec<_> =
                    components.into_iter().map(|path| format!("`{}`", self.shown(path))).collect();
                bail!(
                    "it is not clear which component is this project's: `{FILE}` names {}; it is the only one in the \
                     project's directory or that Cargo makes of it, or else the only one in `{BUILT}`",
                    named.join(", ")
                )
            }
        }
    }

    /// Whether a path, with its links resolved, is in the project, or in Cargo's target directory of the project or of
    /// a workspace around it.
    fn is_own(&self, component: &Path) -> bool {
        let component = real(component);
        let by_cargo =
            || target_dir(&component).and_then(Path::parent).is_some_and(|of| self.dir.starts_with(of));
        component.starts_with(&self.dir) || self.tools == Tools::Cargo && by_cargo()
    }

    /// Returns Cargo's target directory of the project or its workspace, if components or hooks of the configuration
    /// are in one. Fails if they are in several.
    pub(super) fn own_target_dir(&self) -> anyhow::Result<Option<PathBuf>> {
        let hooks = self.hooks().into_iter().map(|(_, dir)| dir);
        let places = self.components().into_iter().chain(hooks).filter(|path| self.is_own(path));
        let dirs = places.filter_map(|path| target_dir(&real(path)).map(Path::to_owned));
        // The target directory of another project can be within this project, and counts only if there is no other.
        let (of_project, within): (BTreeSet<_>, BTreeSet<_>) =
            dirs.partition(|dir| dir.parent().is_some_and(|of| self.dir.starts_with(of)));
        let dirs = if of_project.is_empty() { within } else { of_project };
        match dirs.iter().collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [dir] => Ok(Some(dir.clone())),
            [one, other, ..] => bail!(
                "it is not clear where this project is built: `{FILE}` names components in `{}` and in `{}`",
                one.display(),
                other.display()
            ),
        }
    }

    /// Returns the paths that are no sources: the component that the build makes, and the directories that extensions
    /// may write to. The project's own directory and those around it are left out.
    pub(super) fn written(&self) -> BTreeSet<PathBuf> {
        let is_built = self.tools != Tools::None;
        let component = self.own_component().ok().flatten().filter(|_| is_built);
        let dirs = self.config.extensions.iter().flat_map(|extension| &extension.grants.dirs);
        let dirs = dirs.filter(|dir| dir.mode == DirMode::Rw).map(|dir| dir.host.as_path());
        let all = component.into_iter().chain(dirs).map(real);
        all.filter(|path| !self.dir.starts_with(path)).collect()
    }

    /// Returns the names of the directories of hooks, and where they are.
    pub(super) fn hooks(&self) -> Vec<(&str, &Path)> {
        let hooks = self.config.section::<HooksConfig>().into_iter().flat_map(|hooks| &hooks.0);
        hooks.map(|(name, hooks)| (name.as_str(), hooks.dir.as_path())).collect()
    }

    /// Returns the first component or directory of hooks. `None` means that the program runs outside Main.
    pub(super) fn place_of_components(&self) -> Option<&Path> {
        let hooks = self.hooks().into_iter().map(|(_, dir)| dir);
        self.components().into_iter().chain(hooks).next()
    }

    /// Returns the command that runs the program, if it runs outside Main and its tools are known.
    pub(super) fn program(&self) -> Option<Command> {
        if self.place_of_components().is_some() {
            return None;
        }
        match self.tools {
            Tools::Cargo => Some(self.command("cargo", &["run", "--quiet"])),
            Tools::Npm => Some(self.command("npm", &["start", "--silent"])),
            Tools::Python => Some(self.command("python3", &["main.py"])),
            Tools::Go => Some(self.command("go", &["run", "."])),
            Tools::Make | Tools::None => None,
        }
    }

    /// Returns the usual command for tests of the project's tools, if they are known.
    pub(super) fn tests(&self) -> Option<Command> {
        match self.tools {
            Tools::Cargo => Some(self.command("cargo", &["test"])),
            Tools::Npm => Some(self.command("npm", &["test", "--silent"])),
            Tools::Python if self.place_of_components().is_some() => {
                let python = self.python_tool("python");
                Some(self.command(&python.to_string_lossy(), &["-m", "pytest", "-q"]))
            }
            Tools::Python => Some(self.command("python3", &["-m", "unittest"])),
            Tools::Go => Some(self.command("go", &["test", "-v", "./..."])),
            Tools::Make => Some(self.command("make", &["--silent", "test"])),
            Tools::None => None,
        }
    }

    /// Returns the path of a program in Python's active virtual environment, else in the project's own.
    pub(super) fn python_tool(&self, name: &str) -> PathBuf {
        let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
        active.unwrap_or_else(|| self.dir.join(PYTHON_ENVIRONMENT)).join("bin").join(name)
    }

    /// Makes a command in the directory of the project, without stdin.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// Makes the project's `.weir` directory if it is missing, and returns the path of this file in it.
    pub(super) fn own(&self, file: &str) -> anyhow::Result<PathBuf> {
        let directory = self.dir.join(OWN_DIRECTORY);
        fs::create_dir_all(&directory).with_context(|| format!("cannot make `{}`", directory.display()))?;
        Ok(directory.join(file))
    }

    /// Shows a path as a person in the directory would write it.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }
}

/// Returns the path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    let whole = existing.and_then(|(part, real)| Some(real.join(path.strip_prefix(part).ok()?)));
    // This removes the slash at the end, which `join` with an empty path leaves.
    whole.map_or_else(|| path.to_owned(), |whole| whole.components().collect())
}

/// Returns the target directory that the path of a component or a directory of hooks is in, if Cargo builds it.
fn target_dir(path: &Path) -> Option<&Path> {
    path.ancestors().find(|path| path.ends_with(TARGET)).and_then(Path::parent)
}

/// Stderr, for the output of a tool.
pub(super) fn to_stderr() -> anyhow::Result<Stdio> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    Ok(stderr.context("cannot use stderr for another program")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_another_package_in_the_workspace_is_not_the_projects_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[workspace]\nresolver = '3'\nmembers = ['part-a', 'part-b']");
        for name in ["part-a", "part-b"] {
            write(
                &format!("{name}/Cargo.toml"),
                &format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2024'"),
            );
            write(&format!("{name}/src/main.rs"), "fn main() {}");
        }
        let own_of = |names: &[&str]| {
            let mut config = format!("[main]\nplugin-dir = '{}'\n", dir.display());
            for (id, name) in names.iter().enumerate() {
                let path = format!("target/{TARGET}/release/{name}.wasm");
                config += &format!("[[extension]]\nid = 'x{id}'\npath = '{path}'\n");
            }
            write("part-a/weir.toml", &config);
            let project = Project::load(&dir.join("part-a")).unwrap();
            let own = project.own_component().ok()??;
            Some(own.file_name()?.to_str()?.to_owned())
        };
        assert_eq!(own_of(&["part-b"]), None);
        assert_eq!(own_of(&["part-b", "part-a"]).as_deref(), Some("part-a.wasm"));
        assert_eq!(own_of(&["part_a"]).as_deref(), Some("part_a.wasm"));
    }
}
