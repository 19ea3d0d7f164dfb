//! HTTP as its users have it: nginx over TLS, with the tests' certificates, and programs of others' making.
//!
//! What is tested stands in `host/main/tests/extensions/http.rs`. Here is what these tests need.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    files, guests,
    run::{Process, cargo, output, root, run, target_dir, until},
    setup::{self, NGINX, PYTHON},
};

/// The certificates of `host/http/tests`.
const CERTIFICATES: &str = "host/http/tests/data";

/// The folder of a program in Python that uses what its toolchain brings for `wasi:http`.
const PYTHON_PROGRAM: &str = "xtask/src/full_http";

const COMPONENTIZE_PY: &str = "componentize-py==0.25.0";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&NGINX, &PYTHON])?;
    guests::add_target()?;
    let rust = rust_program()?;
    let python = python_program()?;
    let nginx = Nginx::start()?;
    let mut tests = cargo(["test", "--workspace", "--test", "extensions", "--"])?;
    tests.args(["--ignored", "--nocapture", "--test-threads", "1", "http::full_"]);
    tests.env("WEIR_HTTP_SERVER", &nginx.url).env("WEIR_HTTP_CA", root()?.join(CERTIFICATES).join("ca.pem"));
    run(tests.env("WEIR_HTTP_RUST", rust).env("WEIR_HTTP_PYTHON", python))?;
    Ok(Vec::new())
}

/// The example `http_client` of `wstd`, as its package has it. Cargo builds no examples of dependencies, so the package
/// is copied.
fn rust_program() -> Result<PathBuf> {
    let copy = target_dir()?.join("http/wstd");
    copy_of(&package("wstd")?, &copy)?;
    let manifest = copy.join("Cargo.toml");
    files::write(&manifest, files::read(&manifest)? + "\n[workspace]\n")?;
    let built = target_dir()?.join("http/built");
    let mut build = cargo(["build", "--release", "--example", "http_client", "--target", guests::TARGET])?;
    run(build.current_dir(&copy).arg("--target-dir").arg(&built))?;
    Ok(built.join(guests::TARGET).join("release/examples/http_client.wasm"))
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

/// A program in Python, made by componentize-py.
fn python_program() -> Result<PathBuf> {
    let directory = target_dir()?.join("http/python");
    let (programs, source) = (directory.join("bin"), root()?.join(PYTHON_PROGRAM));
    run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", COMPONENTIZE_PY];
    run(Command::new(programs.join("python")).args(install))?;
    // The standard's own WIT, as the crate for Rust has it.
    let wit = directory.join("wit");
    copy_of(&package("wasip2")?.join("wit/deps"), &wit.join("deps"))?;
    files::copy(&source.join("fetch.wit"), &wit.join("fetch.wit"))?;
    let component = directory.join("fetch.wasm");
    let mut componentize = Command::new(programs.join("componentize-py"));
    componentize.arg("-d").arg(&wit).args(["-w", "fetch", "componentize", "app", "-o"]);
    componentize.env("PYTHONDONTWRITEBYTECODE", "1");
    run(componentize.arg(&component).current_dir(&source))?;
    Ok(component)
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
        // The listener ends here, so nginx can have its port.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
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
