//! The demo of a fleet: the commands of `docs/fleet.md`, as the page has them, with the files of `examples/fleet`.

use std::{
    env,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::weir;
use crate::{
    files, guests,
    run::{Process, output, pause, run, target_dir, until},
    tools,
};

const PAGE: &str = "docs/fleet.md";

const FILES: &str = "examples/fleet";

const NODES: [&str; 2] = ["kitchen", "cellar"];

/// The address of the NATS server in the files of the example.
const SHOWN_ADDRESS: &str = "127.0.0.1:4222";

/// The user, with the password, who may look at what the NATS server has.
const OPERATOR: &str = "operator:operator-for-the-example";

/// Time for a command to be up, or to succeed. Main compiles its extensions meanwhile.
const WITHIN: Duration = Duration::from_secs(120);

/// Time between two looks at whether something has come true.
const PACE: Duration = Duration::from_millis(20);

/// The programs that the commands name.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) weir: PathBuf,
    pub(crate) bridge: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) plugins: PathBuf,
    /// NATS's own command, to look at the server. `None`: nothing looks.
    pub(crate) nats: Option<PathBuf>,
}

impl Programs {
    /// Builds what the environment does not name.
    pub(crate) fn build() -> Result<Self> {
        let named = |variable: &str| env::var_os(variable).map(fs::canonicalize).transpose();
        let plugins = named("WEIR_PLUGINS")?.map_or_else(guests::plugins, Ok)?;
        let (weir, bridge) = match (named("WEIR_COMMAND")?, named("WEIR_NATS_COMMAND")?) {
            (Some(weir), Some(bridge)) => (weir, bridge),
            _ => weir::build_with_bridge()?.into(),
        };
        Ok(Self { weir, bridge, server: tools::nats_server()?, plugins, nats: None })
    }
}

/// Runs the commands until Ctrl-C. With `check`, ends once both machines say what they should.
pub(crate) fn fleet(check: bool) -> Result<()> {
    println!("Building the extensions, `weir`, `weir-nats` and `nats-server` …");
    let programs = Programs::build()?;
    show(&programs, check)
}

/// Runs the commands with these programs.
pub(crate) fn show(programs: &Programs, check: bool) -> Result<()> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    // A check takes any free port, since another program may have the one that the page shows.
    let address = if check { address } else { SHOWN_ADDRESS.parse()? };
    let site = Site::make(programs, address)?;
    let page = files::read(PAGE)?;
    let mut background = Vec::new();
    let commands = commands(&page);
    ensure!(commands.len() == 10, "`{PAGE}` promises ten commands and shows {}", commands.len());
    for command in commands {
        println!("\n$ {command}");
        match command.strip_suffix('&') {
            Some(command) => {
                let command = command.trim_end();
                let mut started = site.start(command, background.len())?;
                site.wait_until_up(command, &mut started)?;
                background.push(started);
            }
            None => {
                let answer = site.answer(command)?;
                if !answer.trim_end().is_empty() {
                    println!("{}", answer.trim_end());
                }
            }
        }
        for started in &mut background {
            started.show()?;
        }
    }
    site.check()?;
    if let Some(nats) = &programs.nats {
        site.show_services(nats)?;
    }
    for started in &mut background {
        started.show()?;
    }
    println!("\nThe call, the events and the jobs have crossed.");
    if check {
        for started in &mut background {
            started.assert_alive()?;
        }
        return Ok(());
    }
    println!("\nTry more from a second terminal:\n\n    cd {}", site.directory.display());
    println!("    {} ps --config {FILES}/kitchen/weir.toml", programs.weir.display());
    println!("\nCtrl-C stops all.");
    loop {
        for started in &mut background {
            started.show()?;
            started.assert_alive()?;
        }
        pause(Duration::from_millis(100));
    }
}

/// The lines of the page's first console that a user types.
fn commands(page: &str) -> Vec<&str> {
    let console = page.split("```console\n").nth(1).and_then(|rest| rest.split("```").next());
    console.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// A directory with the files at the places that the commands name, and the programs on the path.
struct Site {
    directory: PathBuf,
    path: String,
    address: SocketAddr,
}

impl Site {
    fn make(programs: &Programs, address: SocketAddr) -> Result<Self> {
        let directory = target_dir()?.join("demo-fleet");
        files::clear(&directory)?;
        let copy = |file: &str| -> Result<()> {
            let file = format!("{FILES}/{file}");
            let to = directory.join(&file);
            files::make_directory(to.parent().context("a file lies in no directory")?)?;
            files::write(&to, files::read(&file)?.replace(SHOWN_ADDRESS, &address.to_string()))?;
            // Only the owner may read tokens and passwords.
            run(Command::new("chmod").arg("600").arg(&to))
        };
        copy("nats.conf")?;
        for node in NODES {
            for file in ["weir.toml", "bridge.toml", "token", "password"] {
                copy(&format!("{node}/{file}"))?;
            }
            fs::create_dir_all(directory.join("target/fleet").join(node))?;
        }
        std::os::unix::fs::symlink(&programs.plugins, directory.join("target/plugins"))?;
        // The page calls these programs by their names.
        let bin = directory.join("bin");
        fs::create_dir(&bin)?;
        let named =
            [("weir", &programs.weir), ("weir-nats", &programs.bridge), ("nats-server", &programs.server)];
        for (name, program) in named {
            std::os::unix::fs::symlink(program, bin.join(name))?;
        }
        let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap_or_default());
        Ok(Self { directory, path, address })
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(&self.directory).env("PATH", &self.path);
        shell.stdin(Stdio::null());
        shell
    }

    fn start(&self, command: &str, number: usize) -> Result<Started> {
        let log = self.directory.join(format!("{number}.log"));
        let file = File::create(&log)?;
        let child = self.shell(&format!("exec {command}")).stdout(file.try_clone()?).stderr(file).spawn();
        let child = child.with_context(|| format!("cannot start `{command}`"))?;
        Ok(Started {
            command: command.to_owned(),
            process: Process(child),
            log: File::open(log)?,
            shown: 0,
            said: String::new(),
        })
    }

    /// The output of a command, once it succeeds: an extension that needs the other machine may be starting.
    fn answer(&self, command: &str) -> Result<String> {
        let mut last = None;
        let answer =
            until(WITHIN, PACE, || Ok(last.insert(output(&mut self.shell(command))).as_ref().ok().cloned()))?;
        answer.map_or_else(|| last.context("it never ran")?, Ok)
    }

    fn wait_until_up(&self, command: &str, started: &mut Started) -> Result<()> {
        let mut words = command.split_whitespace();
        let (program, verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let up = until(WITHIN, PACE, || {
            let is_up = match (program, verb) {
                ("nats-server", _) => TcpStream::connect(self.address).is_ok(),
                ("weir", "run") => started.read()?.contains(" extensions are ready"),
                ("weir-nats", "run") => started.read()?.contains("ready"),
                // A tail prints nothing when it begins, but Main then has one more subscriber.
                ("weir", "tail") => {
                    let config = command.rsplit(' ').next().unwrap_or_default();
                    let topics = self.shell(&format!("weir topics --json --config {config}")).output()?;
                    String::from_utf8_lossy(&topics.stdout).contains(r#""subscriber":"main""#)
                }
                _ => true,
            };
            if !is_up {
                started.assert_alive()?;
            }
            Ok(is_up.then_some(()))
        })?;
        up.with_context(|| format!("`{command}` is not up within {WITHIN:?}:\n{}", started.said))
    }

    /// What NATS's own command sees of the exported contracts.
    fn show_services(&self, nats: &Path) -> Result<()> {
        let server = format!("nats://{OPERATOR}@{}", self.address);
        let services = output(Command::new(nats).args(["--server", &server, "micro", "list"]))?;
        println!("\n$ nats micro list\n{services}");
        ensure!(services.contains("local__storage_v1"), "the exported contract is no service");
        Ok(())
    }

    /// Waits until each machine has what the other sent.
    fn check(&self) -> Result<()> {
        let ask = |node: &str, call: &str| -> Result<Value> {
            let answer = self.answer(&format!("weir call {call} --config {FILES}/{node}/weir.toml"))?;
            serde_json::from_str(&answer).with_context(|| format!("`{call}` answered no JSON: {answer}"))
        };
        let has = |node: &str, call: &str, is_there: &dyn Fn(&Value) -> bool| {
            let mut last = Value::Null;
            let there = until(WITHIN, PACE, || {
                last = ask(node, call)?;
                Ok(is_there(&last).then_some(()))
            })?;
            there.with_context(|| format!("`{call}` at the {node} still answers {last}"))
        };
        let stored = r#"local.storage@1 get '{"key": "settings/volume"}'"#;
        has("cellar", stored, &|answer| answer.pointer("/value/value") == Some(&11.into()))?;
        let counted = |topic: &'static str| {
            move |answer: &Value| {
                let topics = answer.get("topics").and_then(Value::as_array).into_iter().flatten();
                let mut topics = topics.filter(|counted| counted.get("topic") == Some(&topic.into()));
                topics.next().and_then(|counted| counted.get("count")) == Some(&1.into())
            }
        };
        has("cellar", "telemetry@1 snapshot", &counted("settings.changed.volume"))?;
        has("kitchen", "telemetry@1 snapshot", &counted("courier.received.to-cellar"))?;
        for (node, letter) in [("cellar", "the milk is out"), ("kitchen", "it is on the stairs")] {
            has(node, "courier@1 received", &|answer| {
                let letters = answer.get("letters").and_then(Value::as_array).into_iter().flatten();
                letters.filter_map(|it| it.get("text")).eq([&Value::from(letter)])
            })?;
        }
        Ok(())
    }
}

/// A command in the background.
struct Started {
    command: String,
    process: Process,
    log: File,
    /// How many bytes of `said` have been shown.
    shown: usize,
    /// The output at the last look.
    said: String,
}

impl Started {
    /// Reads the whole output of the command so far.
    fn read(&mut self) -> Result<&str> {
        let mut bytes = Vec::new();
        self.log.seek(SeekFrom::Start(0))?;
        self.log.read_to_end(&mut bytes)?;
        self.said = String::from_utf8_lossy(&bytes).into_owned();
        Ok(&self.said)
    }

    /// Prints the whole lines that are new.
    fn show(&mut self) -> Result<()> {
        let shown = self.shown;
        let new = self.read()?.get(shown..).unwrap_or_default();
        let lines = new.rfind('\n').map_or(0, |end| end + 1);
        for line in new.get(..lines).unwrap_or_default().lines() {
            println!("    {line}");
        }
        self.shown += lines;
        Ok(())
    }

    fn assert_alive(&mut self) -> Result<()> {
        let ended = self.process.0.try_wait()?;
        self.read()?;
        ensure!(ended.is_none(), "`{}` ended:\n{}", self.command, self.said);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_ten_commands_and_the_files_that_they_name() {
        let page = files::read(PAGE).unwrap();
        assert_eq!(commands(&page).len(), 10);
        for file in ["kitchen/weir.toml", "kitchen/bridge.toml", "cellar/bridge.toml"] {
            let text = files::read(Path::new(FILES).join(file)).unwrap();
            // Without the comment that names the page.
            let (_, shown) = text.split_once("\n\n").unwrap();
            assert!(page.contains(shown), "`{PAGE}` shows another `{file}`");
        }
    }
}
