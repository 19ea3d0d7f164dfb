//! Follows `docs/first-extension.md` as its reader does: outside the clone, with the published crates
//! packaged, and with only the commands that the page shows. Then makes and tests the other kinds of projects.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{
    demo::weir,
    files, guests,
    run::{cargo, output, root, run, target_dir, until},
};

/// The published crates of this repository that authors depend on, and those that these need.
const PUBLISHED: [&str; 4] = ["weir-names", "weir-sdk-derive", "weir-sdk", "weir-peer"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Modules of Go that no public database has sums of.
const GO_MODULES: &str = "github.com/weir-rt/*";

/// Time from an edit to an answer of the new version. The first answer waits for the build of all crates.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// Files of the project that the page shows.
const SHOWN: [&str; 2] = ["src/lib.rs", "src/main.rs"];

pub(crate) fn check() -> Result<()> {
    guests::add_target()?;
    let weir = weir::build()?;
    let author = Author::new(&weir)?;
    author.follow(&files::read("docs/first-extension.md")?)?;
    for kind in ["hook", "sidecar", "app"] {
        author.make_and_test(kind, &["--kind", kind], false)?;
    }
    author.make_and_test("in-python", &["--lang", "python", "--kind", "sidecar"], false)?;
    if Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_ok() {
        // The client for pages is no crate, so it comes from the clone.
        author.make_and_test("in-typescript", &["--lang", "typescript", "--kind", "app"], true)?;
    } else {
        eprintln!("skipped: a project in TypeScript, for want of `npm`");
    }
    Ok(())
}

/// Makes and tests a new project in each language of packages alone: of these crates, and of the packages for other
/// registries below a directory. Has Rust's compiler read the command, and with it the library for embedders.
pub(crate) fn from_packages(crates: &[&str], packages: &Path) -> Result<()> {
    let mut author = Author::with(&weir::build()?, crates, packages)?;
    let directory = author.directory.path().to_owned();
    for program in ["weir-cli", "weir-nats", "weir-registry"] {
        run(author.command("cargo", &unpacked(&directory, program)).args(["check", "--quiet"]))?;
    }
    author.make_and_test("of-crates", &[], false)?;

    // A path to look in would not do: what others publish under the name could be newer, and win.
    let wheel = packages.join(format!("pypi/weir_sdk-{VERSION}-py3-none-any.whl"));
    let constraint = directory.join("constraint.txt");
    files::write(&constraint, format!("weir-sdk @ file://{}\n", wheel.display()))?;
    author.variables.push(("PIP_CONSTRAINT", constraint.into()));
    author.make_and_test("of-wheels", &["--lang", "python"], false)?;

    let proxies = output(Command::new("go").args(["env", "GOPROXY"]))?;
    let proxies = format!("file://{},{}", packages.join("go").display(), proxies.trim_end());
    let modules = directory.join("modules").into_os_string();
    author.variables.extend([
        ("GOPROXY", proxies.into()),
        ("GOMODCACHE", modules),
        ("GONOSUMDB", GO_MODULES.into()),
    ]);
    author.variables.push(("GOFLAGS", "-modcacherw".into()));
    author.make_and_test("of-modules", &["--lang", "go"], false)?;

    for (kind, package) in [("extension", "weir-sdk"), ("app", "weir-client")] {
        run(author.command("weir", &directory).args(["new", kind, "--lang", "typescript", "--kind", kind]))?;
        let project = directory.join(kind);
        let tarball = packages.join(format!("npm/{package}-{VERSION}.tgz"));
        let install = ["install", "--no-save", "--no-audit", "--no-fund", "--silent"];
        run(author.command("npm", &project).args(install).arg(tarball))?;
        run(author.command("weir", &project).arg("test"))?;
    }
    Ok(())
}

/// Makes and tests a new extension in this language, with the SDK of the clone.
pub(crate) fn in_language(lang: &str) -> Result<()> {
    let author = Author::new(&weir::build()?)?;
    author.make_and_test(&format!("in-{lang}"), &["--lang", lang], true)
}

/// A person with the `weir` command and a directory of their own.
struct Author {
    directory: tempfile::TempDir,
    path: OsString,
    /// Where tools of other languages look for packages.
    variables: Vec<(&'static str, OsString)>,
}

impl Author {
    fn new(weir: &Path) -> Result<Self> {
        let mut package = cargo(["package", "--no-verify", "--allow-dirty", "--quiet"])?;
        run(package.args(PUBLISHED.map(|name| format!("--package={name}"))))?;
        Self::with(weir, &PUBLISHED, &target_dir()?)
    }

    /// Cargo finds these crates, which lie packed below a directory.
    fn with(weir: &Path, crates: &[&str], packed: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        unpack(directory.path(), crates, &packed.join("package"))?;
        let installed = weir.parent().map(Path::to_owned).into_iter();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(installed.chain(env::split_paths(&path)))?;
        Ok(Self { directory, path, variables: Vec::new() })
    }

    /// Runs the commands of the page, and compares files and answers with those that it shows.
    fn follow(&self, page: &str) -> Result<()> {
        let begun = Instant::now();
        let project = self.directory.path().join("greeter");
        self.shell(self.directory.path(), &shown(page, "new")?)?;
        for file in SHOWN {
            ensure!(
                files::read(project.join(file))? == shown(page, file)?,
                "the page shows another `{file}` than `weir new` makes"
            );
        }
        let dev = Dev::start(self.command("timeout", &project), &shown(page, "dev")?)?;
        self.until_answered(&dev, &project, page, "answer")?;
        self.shell(&project, &shown(page, "edit")?)?;
        self.until_answered(&dev, &project, page, "answer-after-edit")?;
        dev.end()?;
        for step in ["test", "check", "inspect"] {
            self.shell(&project, &shown(page, step)?)?;
        }
        eprintln!("the page took {:.0} s", begun.elapsed().as_secs_f64());
        Ok(())
    }

    fn until_answered(&self, dev: &Dev, project: &Path, page: &str, name: &str) -> Result<()> {
        let (call, expected) = (shown(page, "call")?, shown(page, name)?);
        let mut last = None;
        let answered = until(ANSWER_WITHIN, Duration::from_millis(100), || {
            let mut command = self.command("sh", project);
            let answer = output(command.args(["-ec", &call]).env("WEIR_SOCKET", &dev.socket));
            let is_answered = answer.as_ref().is_ok_and(|answer| answer.trim() == expected.trim());
            last = Some(answer);
            Ok(is_answered.then_some(()))
        })?;
        answered.with_context(|| format!("the page says `{expected}`, and the answer is {last:?}"))
    }

    /// Makes a project by `weir new` and tests it, with the published crates or the SDK of the clone.
    fn make_and_test(&self, name: &str, options: &[&str], with_clone: bool) -> Result<()> {
        let mut new = self.command("weir", self.directory.path());
        new.args(["new", name]).args(options);
        if with_clone {
            new.env("WEIR_SDK", root()?);
        }
        run(&mut new)?;
        run(self.command("weir", &self.directory.path().join(name)).arg("test"))
    }

    fn shell(&self, directory: &Path, commands: &str) -> Result<()> {
        run(self.command("sh", directory).args(["-ec", commands]))
    }

    fn command(&self, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env("PATH", &self.path).env_remove("WEIR_SDK");
        command.envs(self.variables.iter().cloned());
        // All projects share one directory for builds, so that nothing is built twice.
        command.env("CARGO_TARGET_DIR", self.directory.path().join("target"));
        command
    }
}

/// A `weir dev` that runs.
struct Dev {
    child: Child,
    socket: PathBuf,
}

impl Dev {
    /// Starts `weir dev` by `timeout`, and waits until it has printed the socket of its Main.
    fn start(mut timeout: Command, dev: &str) -> Result<Self> {
        timeout.arg(ANSWER_WITHIN.as_secs().to_string()).args(dev.split_whitespace());
        let child = timeout.stdout(Stdio::piped()).spawn().context("cannot run `timeout`")?;
        let mut dev = Self { child, socket: PathBuf::new() };
        let stdout = dev.child.stdout.take().context("`weir dev` has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let socket = line.trim().strip_prefix("export WEIR_SOCKET=");
        dev.socket = socket.with_context(|| format!("`weir dev` printed no socket: `{line}`"))?.into();
        Ok(dev)
    }

    fn end(mut self) -> Result<()> {
        run(Command::new("kill").arg("-INT").arg(self.child.id().to_string()))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "`weir dev` ended with {status}");
        ensure!(!self.socket.exists(), "`{}` is still there", self.socket.display());
        Ok(())
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // This fails if `weir dev` has ended, which is the aim.
        let _ended = run(Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()));
        let _reaped = self.child.wait();
    }
}

/// The fenced block after the line `<!-- NAME -->`.
fn shown(page: &str, name: &str) -> Result<String> {
    let (_, rest) = page
        .split_once(&format!("<!-- {name} -->\n"))
        .with_context(|| format!("the page shows no `{name}`"))?;
    let block = rest.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    let (content, _) = block
        .and_then(|rest| rest.split_once("```"))
        .with_context(|| format!("no block follows `{name}`"))?;
    Ok(content.to_owned())
}

/// Unpacks crates, as a registry would. Cargo finds them in place of the registry's, in all projects below the directory.
fn unpack(directory: &Path, crates: &[&str], packed: &Path) -> Result<()> {
    let mut patches = "[patch.crates-io]\n".to_owned();
    for name in crates {
        let archive = packed.join(format!("{name}-{VERSION}.crate"));
        output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(directory))?;
        patches += &format!("{name}.path = {:?}\n", unpacked(directory, name));
    }
    fs::create_dir(directory.join(".cargo")).context("cannot make a directory")?;
    fs::write(directory.join(".cargo/config.toml"), patches).context("cannot tell Cargo of the crates")
}

/// The directory of an unpacked crate.
fn unpacked(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}-{VERSION}"))
}
