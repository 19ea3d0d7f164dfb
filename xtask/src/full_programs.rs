//! Programs of crates.io, unchanged, and of languages that need more of WebAssembly: under Weir each prints, writes and ends
//! as it does under `wasmtime run`. Most run as hooks, and a server as an extension.

mod languages;

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    demo::weir,
    files, full_http, guests,
    run::{Process, cargo, run, target_dir, until},
    setup::{self, PYTHON},
};

/// Arguments, standard input, and the exit code, which is 0 or 1 in WASI 0.2.
type Run = (&'static [&'static str], &'static str, i64);

/// A program of a crate.
struct Program {
    package: &'static str,
    version: &'static str,
    /// Its name, if that is not the crate's.
    name: Option<&'static str>,
    /// Whether it is built of the versions that its author chose. Some of those are older than `wasm32-wasip2`.
    is_locked: bool,
    runs: &'static [Run],
}

const fn program(package: &'static str, version: &'static str, runs: &'static [Run]) -> Program {
    Program { package, version, name: None, is_locked: true, runs }
}

const LINES: &str = "pear 10\napple 9\nfig 10\napple 9\n";

const PAGE: &str = "<html><body><h1>A title</h1><p class=x>One</p><p>Two</p></body></html>";

const PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><circle cx='20' cy='15' r='9' \
                       fill='teal'/></svg>";

const PROGRAMS: [Program; 15] = [
    Program {
        is_locked: false,
        ..program("sd", "1.0.0", &[(&["(\\w+) 10", "$1 ten"], LINES, 0), (&["(", "x"], LINES, 1)])
    },
    program("choose", "1.3.7", &[(&["1"], LINES, 0), (&["0:1", "-o", ";"], LINES, 0)]),
    Program { is_locked: false, ..program("hexyl", "0.17.0", &[(&[], LINES, 0), (&["/data/none"], "", 1)]) },
    program("svgbob_cli", "0.7.6", &[(&[], "--->o\n", 0), (&["/data/none"], "", 1)]),
    Program {
        name: Some("rg"),
        ..program(
            "ripgrep",
            "15.2.0",
            &[
                (&["--sort", "path", "-n", "apple", "/data"], "", 0),
                (&["-c", "ap+le", "-"], LINES, 0),
                (&["(", "/data"], "", 1),
                (&["nowhere", "/data"], "", 1),
            ],
        )
    },
    program(
        "b3sum",
        "1.8.7",
        // It wants threads, which WASI 0.2 has not, and says so.
        &[(&["--num-threads", "1", "/data/lines.txt"], "", 1), (&[], LINES, 1)],
    ),
    Program {
        name: Some("sort"),
        ..program(
            "uu_sort",
            "0.12.0",
            &[(&["-u"], LINES, 0), (&["-k2,2n", "/data/lines.txt"], "", 0), (&["/none"], "", 1)],
        )
    },
    Program {
        is_locked: false,
        ..program(
            "csview",
            "1.3.4",
            &[(&["/data/table.csv"], "", 0), (&["--style", "markdown", "/data/table.csv"], "", 0)],
        )
    },
    program("jsonxf", "1.1.1", &[(&[], "{\"a\":[1,2]}", 0), (&["-m"], "[ 1, 2 ]", 0)]),
    program("runiq", "2.1.0", &[(&["-"], LINES, 0), (&["--invert", "-"], LINES, 0)]),
    program("htmlq", "0.4.0", &[(&["--text", "p"], PAGE, 0), (&["--attribute", "class", "p"], PAGE, 0)]),
    program(
        "resvg",
        "0.49.0",
        &[(&["/data/picture.svg", "/out/picture.png"], "", 0), (&["/data/lines.txt", "/out/no"], "", 1)],
    ),
    program(
        "pulldown-cmark",
        "0.13.4",
        &[(&[], "# Title\n\n- one\n- *two*\n", 0), (&["-e"], "# Title\n", 0)],
    ),
    Program {
        name: Some("seq"),
        ..program("uu_seq", "0.12.0", &[(&["-w", "8", "0.5", "10"], "", 0), (&["none"], "", 1)])
    },
    Program {
        name: Some("rhai-run"),
        ..program("rhai", "1.27.0", &[(&["/data/sum.rhai"], "", 0), (&["/data/lines.txt"], "", 0)])
    },
];

/// The files that programs see in `/data`.
const DATA: [(&str, &str); 4] = [
    ("lines.txt", LINES),
    ("table.csv", "name,price\npear,10\napple,9\n"),
    ("picture.svg", PICTURE),
    ("sum.rhai", "let sum = 0; for n in 1..=100 { sum += n * n; } print(sum);"),
];

/// What a program did: its exit code, what it printed, and the files that it wrote.
#[derive(Debug, PartialEq)]
struct Done {
    code: i64,
    stdout: String,
    stderr: String,
    files: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&PYTHON])?;
    guests::add_target()?;
    let (weir, wasmtime) = (weir::build()?, full_http::wasmtime()?);
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let data = directory.path().join("data");
    files::make_directory(&data)?;
    for (name, content) in DATA {
        files::write(&data.join(name), content)?;
    }
    let adapted = |module: PathBuf| -> Result<PathBuf> {
        run(Command::new(&weir).arg("build").arg("--adapt").arg(&module))?;
        Ok(module)
    };
    let mut programs: Vec<(&str, PathBuf, &[&str], &[Run])> = Vec::new();
    for program in &PROGRAMS {
        programs.push((program.package, installed(program)?, &[], program.runs));
    }
    programs.push(("kotlin", adapted(languages::kotlin()?)?, &["exceptions", "gc"], &[(&[], "", 0)]));
    programs.push(("cpp", adapted(languages::cpp()?)?, &["exceptions"], &[(&[], "", 0)]));
    for (name, component, features, runs) in programs {
        for (arguments, stdin, code) in runs {
            let case = format!("`{name} {}`", arguments.join(" "));
            let place = |name: &str| Place::new(directory.path(), &data, name);
            let theirs = by_wasmtime(&wasmtime, &component, features, arguments, stdin, &place("theirs")?)?;
            let ours = by_weir(&weir, &component, features, arguments, stdin, &place("ours")?)
                .with_context(|| format!("{case} under Weir"))?;
            ensure!(ours == theirs, "{case}: under Weir {ours:#?}\nand under wasmtime {theirs:#?}");
            let is_seen = ours.code != 0 || !ours.stdout.is_empty() || !ours.files.is_empty();
            ensure!(ours.code == *code && is_seen, "{case} is not what this group wants: {ours:#?}");
            eprintln!("{case}: the same, exit code {code}");
        }
    }
    echo_server(&weir, &wasmtime)?;
    Ok(Vec::new())
}

/// Builds the program of a crate for WASI 0.2, unless it is built.
fn installed(program: &Program) -> Result<PathBuf> {
    let Program { package, version, name, is_locked, .. } = program;
    let root = target_dir()?.join("programs").join(format!("{package}-{version}"));
    let built = root.join(format!("bin/{}.wasm", name.unwrap_or(package)));
    if built.exists() {
        return Ok(built);
    }
    let mut install = cargo(["install", package, "--no-track", "--target", guests::TARGET])?;
    install.args(["--version", &format!("={version}"), "--root"]).arg(&root);
    install.args(name.iter().flat_map(|name| ["--bin", name]));
    install.args(is_locked.then_some("--locked"));
    // They share what they depend on, and run for a moment.
    install.env("CARGO_TARGET_DIR", target_dir()?.join("programs/built"));
    for (key, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "1")] {
        install.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    run(&mut install)?;
    Ok(built)
}

/// The directories of one run.
struct Place<'d> {
    data: &'d Path,
    /// Where it may write.
    out: PathBuf,
    /// Where the hook is, and its standard input.
    own: PathBuf,
}

impl<'d> Place<'d> {
    fn new(directory: &Path, data: &'d Path, name: &str) -> Result<Self> {
        let own = directory.join(name);
        files::clear(&own)?;
        let out = own.join("out");
        files::make_directory(&out)?;
        Ok(Self { data, out, own })
    }

    fn done(&self, code: i64, stdout: String, stderr: String) -> Result<Done> {
        let mut files = BTreeMap::new();
        for file in fs::read_dir(&self.out)? {
            let file = file?;
            files.insert(file.file_name().to_string_lossy().into_owned(), fs::read(file.path())?);
        }
        Ok(Done { code, stdout, stderr, files })
    }
}

fn by_wasmtime(
    wasmtime: &Path,
    component: &Path,
    features: &[&str],
    arguments: &[&str],
    stdin: &str,
    place: &Place<'_>,
) -> Result<Done> {
    let mut command = Command::new(wasmtime);
    command.arg("run");
    for (host, guest) in [(place.data, "/data"), (&*place.out, "/out")] {
        command.arg("--dir").arg(format!("{}::{guest}", host.display()));
    }
    command.args(features.iter().map(|feature| format!("-W{feature}")));
    command.arg(component).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot run `wasmtime`")?;
    // A program that fails may read nothing.
    let _unread = child.stdin.take().context("it has no stdin")?.write_all(stdin.as_bytes());
    let output = child.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let code = output.status.code().context("wasmtime was ended by a signal")?.into();
    place.done(code, text(output.stdout), text(output.stderr))
}

fn by_weir(
    weir: &Path,
    component: &Path,
    features: &[&str],
    arguments: &[&str],
    stdin: &str,
    place: &Place<'_>,
) -> Result<Done> {
    let hooks = place.own.join("hooks");
    files::make_directory(&hooks)?;
    files::copy(component, &hooks.join(component.file_name().context("a program without a name")?))?;
    files::write(&place.own.join("stdin"), stdin)?;
    let mut command = Command::new(weir);
    command.args(["hooks", "run", "--json", "--class", "max", "--timeout", "5m", "--output", "16MiB"]);
    command.args(features.iter().map(|feature| format!("--feature={feature}")));
    command.arg("--stdin").arg(place.own.join("stdin"));
    command.arg("--dir").arg(format!("{}:/data:ro", place.data.display()));
    command.arg("--dir").arg(format!("{}:/out:rw", place.out.display()));
    command.args(arguments.iter().map(|argument| format!("--arg={argument}"))).arg(&hooks);
    let output = command.env("CACHE_DIRECTORY", target_dir()?.join("demo/cache")).output()?;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("`weir hooks run` reported nothing: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let run = report.pointer("/hooks/0").with_context(|| format!("nothing was run: {report}"))?;
    let code = match run["outcome"].as_str() {
        Some("ok") => 0,
        _ => run["code"].as_i64().with_context(|| format!("it did not end by itself: {run}"))?,
    };
    let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
    place.done(code, text("stdout"), text("stderr"))
}

/// The address in the example of `wstd`.
const ECHO: &str = "127.0.0.1:8080";

/// An echo server made with `wstd`, which knows nothing of Weir: an extension that listens.
fn echo_server(weir: &Path, wasmtime: &Path) -> Result<()> {
    let component = full_http::of_wstd("tcp_echo_server")?;
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    files::copy(&component, &directory.path().join("echo.wasm"))?;
    let config = format!(
        "main.control-socket = \"weir.sock\"\n[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\n\
         grants.net = [{{ address = \"{ECHO}\", listen = true }}]\n"
    );
    files::write(&directory.path().join("weir.toml"), config)?;
    let mut ours = Command::new(weir);
    ours.args(["run", "weir.toml"]);
    let mut theirs = Command::new(wasmtime);
    theirs.args(["run", "-Sinherit-network", "echo.wasm"]);
    ensure!(TcpStream::connect(ECHO).is_err(), "another program listens at {ECHO}");
    for mut server in [theirs, ours] {
        let server = server.current_dir(directory.path()).stdout(Stdio::null()).spawn()?;
        let _server = Process(server);
        let answer = until(Duration::from_secs(120), Duration::from_millis(100), || Ok(echoed().ok()))?;
        ensure!(answer.as_deref() == Some("hello\n"), "the echo is {answer:?}");
    }
    eprintln!("`wstd`'s `tcp_echo_server`: the same");
    Ok(())
}

fn echoed() -> Result<String> {
    let mut stream = TcpStream::connect(ECHO)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"hello\n")?;
    let mut answer = [0; 6];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
