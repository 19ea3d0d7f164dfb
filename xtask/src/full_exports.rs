//! Components of five languages that know nothing of Weir, each made by its own tools, and that hand a value on to each
//! other: Rust to Python to C to Go to JavaScript. The command, an app and an extension with the SDK call the first. And a
//! new project of each language. `docs/exports.md` says how.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    demo::weir,
    files,
    full_http::{componentize_js, componentize_py},
    guests,
    projects::{self, bindgen, go_runtime, with_bindgen},
    run::{Process, cargo, output, root, run, target_dir, until},
    setup::{self, C_FOR_WASM, GO, NODE, PYTHON},
};

const SOURCES: &str = "xtask/src/full_exports";

const INTERFACE: &str = "acme:chain/step@1.0.0";

const NOTE: &str = r#"{"note":{"text":"hi","path":[],"weight":0.1}}"#;
const HANDED_ON: &str = r#"{"text":"hi","path":["rust","python","c","go","javascript"],"weight":0.1}"#;

const APP: &str = "app:exports";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&C_FOR_WASM, &GO, &NODE, &PYTHON])?;
    guests::add_target()?;
    let weir = weir::build()?;
    projects::check(&weir, "plain", &["rust", "python", "typescript", "go", "c"])?;
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let path = directory.path();
    let (token, hash) = weir::token(&weir, APP)?;
    // The listener ends here, so Main can have its port.
    let gateway = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let chain = [
        ("rust", of_rust()?, Some("python")),
        ("python", of_python()?, Some("c")),
        ("c", of_c()?, Some("go")),
        ("go", of_go(&weir)?, Some("javascript")),
        ("javascript", of_javascript()?, None),
    ];
    files::copy(&guests::test_guest("puppet")?, &path.join("caller.wasm"))?;
    let mut configuration = format!(
        "main.control-socket = \"weir.sock\"\n[gateway]\nlisten = [\"{gateway}\"]\n\
         [peer.\"{APP}\"]\ntokens = [\"{hash}\"]\nwants = [\"rust@1\"]\n\
         [[extension]]\nid = \"caller\"\npath = \"caller.wasm\"\nfulfills = [\"caller@1\"]\nwants = [\"rust@1\"]\n\
         config = {{ contract = \"caller@1\" }}\n"
    );
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
        command.args(arguments).current_dir(path).env("WEIR_SOCKET", "weir.sock");
        command
    };
    let checked = output(&mut command(&["check", "weir.toml"]))?;
    ensure!(checked.lines().count() == 6 && checked.lines().all(|line| line.ends_with("is ok")), "{checked}");
    let _main = Process(command(&["run", "weir.toml"]).spawn()?);
    let call = |note: &str| command(&["call", "rust@1", "hand", note]).output();
    let ready = || {
        let tried = call(NOTE)?;
        Ok(tried.status.success().then_some(tried.stdout))
    };
    let answer = until(Duration::from_secs(300), Duration::from_millis(200), ready)?.context("no answer")?;
    let by_command = String::from_utf8_lossy(&answer).into_owned();
    let by_extension =
        output(&mut command(&["call", "--raw", "caller@1", "run", &format!("call rust@1 hand {NOTE}")]))?;
    let by_app = by_app(gateway, &token)?;
    for answer in [by_command, by_extension, by_app] {
        ensure!(answer.contains(HANDED_ON), "{answer}");
    }
    // The error of the last one arrives at the first.
    let refused = call(r#"{"note":{"text":"","path":[]}}"#)?;
    let refused = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.trim() == "error: empty: empty", "{refused}");
    Ok(Vec::new())
}

/// The answer to an app's call.
fn by_app(gateway: SocketAddr, token: &str) -> Result<String> {
    let call = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rust@1/hand\",\"params\":{NOTE}}}");
    let mut stream = TcpStream::connect(gateway)?;
    write!(
        stream,
        "POST /v1/peers/{APP}/rpc HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{call}",
        call.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
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

fn of_c() -> Result<PathBuf> {
    let (source, directory) = (root()?.join(SOURCES), target_dir()?.join("exports/c"));
    files::make_directory(&directory)?;
    let mut generate = Command::new(bindgen()?);
    generate.args(["c", "--world", "middle"]).arg(source.join("step.wit"));
    run(generate.current_dir(&directory))?;
    let linker = PathBuf::from(output(Command::new("rustc").args(["--print", "target-libdir"]))?.trim_end());
    let linker = linker.with_file_name("bin/wasm-component-ld");
    let mut compile = Command::new("clang");
    compile.args(["--target=wasm32-wasi", "-mexec-model=reactor", "-Os", "-Wl,--stack-first", "-I."]);
    compile.arg(format!("-fuse-ld={}", linker.display())).arg(source.join("step.c"));
    compile.args(["middle.c", "middle_component_type.o", "-o", "step.wasm"]);
    run(compile.current_dir(&directory))?;
    Ok(directory.join("step.wasm"))
}

/// A component in Go, made as `weir build` makes one of a project.
fn of_go(weir: &Path) -> Result<PathBuf> {
    let (source, directory) = (root()?.join(SOURCES), target_dir()?.join("exports/go"));
    files::clear(&directory)?;
    for (name, to) in [("step.wit", "wit/step.wit"), ("step.go", "export_acme_chain_step/step.go")] {
        let to = directory.join(to);
        files::make_directory(to.parent().context("no directory")?)?;
        files::write(&to, files::read(source.join(name))?.replace("world middle", "world plugin"))?;
    }
    let program = "package main\n\nimport _ \"step/dist/bindings/wit_exports\"\n\nfunc main() {}\n";
    files::write(&directory.join("main.go"), program)?;
    let module = "module step\n\ngo 1.25\n\nrequire go.bytecodealliance.org/pkg v0.2.3\n";
    files::write(&directory.join("go.mod"), module)?;
    let configuration = format!(
        "[[extension]]\nid = \"step\"\npath = \"step.wasm\"\nfulfills = [{{ contract = \"step@1\", export = \"{INTERFACE}\" }}]\n"
    );
    files::write(&directory.join("weir.toml"), configuration)?;
    go_runtime(&directory)?;
    run(Command::new(weir).arg("build").current_dir(&directory).env("PATH", with_bindgen()?))?;
    Ok(directory.join("step.wasm"))
}
