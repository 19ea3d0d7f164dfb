//! Components of three languages that know nothing of Weir, each made by its own tools, and that hand a value on to each
//! other: Rust to Python to JavaScript. `docs/exports.md` says how.

use std::{path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    demo::weir,
    files,
    full_http::{componentize_js, componentize_py},
    guests,
    run::{Process, cargo, output, root, run, target_dir, until},
    setup::{self, NODE, PYTHON},
};

const SOURCES: &str = "xtask/src/full_exports";

const INTERFACE: &str = "acme:chain/step@1.0.0";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&NODE, &PYTHON])?;
    guests::add_target()?;
    let (weir, directory) = (weir::build()?, tempfile::tempdir().context("cannot make a directory")?);
    let path = directory.path();
    let chain = [
        ("rust", of_rust()?, Some("python")),
        ("python", of_python()?, Some("javascript")),
        ("javascript", of_javascript()?, None),
    ];
    let mut configuration = "main.control-socket = \"weir.sock\"\n".to_owned();
    for (id, component, next) in chain {
        files::copy(&component, &path.join(format!("{id}.wasm")))?;
        let imports = next.map(|next| format!("imports = {{ \"{INTERFACE}\" = \"{next}@1\" }}\n"));
        configuration += &format!(
            "[[extension]]\nid = \"{id}\"\npath = \"{id}.wasm\"\nclass = \"max\"\nlimits.ready-timeout = \"5m\"\n\
             fulfills = [{{ contract = \"{id}@1\", export = \"{INTERFACE}\" }}]\n{}",
            imports.unwrap_or_default()
        );
    }
    files::write(&path.join("weir.toml"), configuration)?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&weir);
        command.args(arguments).current_dir(path);
        command
    };
    let checked = output(&mut command(&["check", "weir.toml"]))?;
    ensure!(checked.lines().count() == 3 && checked.lines().all(|line| line.ends_with("is ok")), "{checked}");
    let _main = Process(command(&["run", "weir.toml"]).spawn()?);
    let call = |note: &str| command(&["call", "--socket", "weir.sock", "rust@1", "hand", note]).output();
    let ready = || {
        let tried = call(r#"{"note":{"text":"hi","path":[],"weight":0.1}}"#)?;
        Ok(tried.status.success().then_some(tried.stdout))
    };
    let answer = until(Duration::from_secs(300), Duration::from_millis(200), ready)?.context("no answer")?;
    let expected = r#"{"text":"hi","path":["rust","python","javascript"],"weight":0.1}"#;
    ensure!(String::from_utf8_lossy(&answer).trim() == expected, "{}", String::from_utf8_lossy(&answer));
    // The error of the last one arrives at the first.
    let refused = call(r#"{"note":{"text":"","path":[]}}"#)?;
    let refused = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.trim() == "error: empty: empty", "{refused}");
    Ok(Vec::new())
}

fn of_rust() -> Result<PathBuf> {
    let (source, directory) = (root()?.join(SOURCES), target_dir()?.join("exports/rust"));
    files::make_directory(&directory)?;
    for name in ["step.wit", "step.rs"] {
        files::copy(&source.join(name), &directory.join(name))?;
    }
    let manifest = "[package]\nname = \"step\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\npath = \"step.rs\"\n\
                    crate-type = [\"cdylib\"]\n[dependencies]\nwit-bindgen = \"0.61\"\n[workspace]\n";
    files::write(&directory.join("Cargo.toml"), manifest)?;
    let mut build = cargo(["build", "--release", "--target", guests::TARGET])?;
    run(build.current_dir(&directory).arg("--target-dir").arg(directory.join("target")))?;
    Ok(directory.join("target").join(guests::TARGET).join("release/step.wasm"))
}

fn of_python() -> Result<PathBuf> {
    let (source, component) = (root()?.join(SOURCES), target_dir()?.join("exports/python.wasm"));
    let mut componentize = Command::new(componentize_py()?);
    componentize.args(["-d", "step.wit", "-w", "middle", "componentize", "step", "-o"]).arg(&component);
    run(componentize.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&source))?;
    Ok(component)
}

fn of_javascript() -> Result<PathBuf> {
    let (source, directory) = (root()?.join(SOURCES), componentize_js()?);
    for name in ["step.wit", "step.mjs"] {
        files::copy(&source.join(name), &directory.join(name))?;
    }
    let script = "import { componentize } from \"@bytecodealliance/componentize-js\";\n\
                  import { writeFile } from \"node:fs/promises\";\n\
                  const { component } = await componentize({ sourcePath: \"step.mjs\", witPath: \"step.wit\", worldName: \"last\" });\n\
                  await writeFile(\"step.wasm\", component);\n";
    files::write(&directory.join("step-component.mjs"), script)?;
    run(Command::new("node").arg("step-component.mjs").current_dir(&directory))?;
    Ok(directory.join("step.wasm"))
}
