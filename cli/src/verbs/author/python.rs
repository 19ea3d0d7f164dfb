//! Extensions in Python: `weir-py` of the package `weir-sdk`, in the project's virtual environment.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::project::Project;

/// The virtual environment, if none is active.
const ENVIRONMENT: &str = ".venv";

/// What it has.
const REQUIREMENTS: &str = "requirements.txt";

/// The commands that make the component. The first ones make the environment, if there is none.
pub(super) fn build(project: &Project, component: &Path) -> Vec<Command> {
    let tool = tool(project, "weir-py");
    let mut commands = Vec::new();
    if !tool.is_file() && env::var_os("VIRTUAL_ENV").is_none() {
        commands.push(project.command("python3", &["-m", "venv", ENVIRONMENT]));
        let pip = self::tool(project, "pip");
        let install = ["install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS];
        commands.push(project.command(&pip.to_string_lossy(), &install));
    }
    let mut build = project.command(&tool.to_string_lossy(), &["build", "app", "--output"]);
    build.arg(component);
    commands.push(build);
    commands
}

/// A program of the active environment, else of the project's own.
pub(super) fn tool(project: &Project, name: &str) -> PathBuf {
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    active.unwrap_or_else(|| project.dir.join(ENVIRONMENT)).join("bin").join(name)
}
