//! Processes that end with the test, and waiting for them.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Long enough for a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at another process, which has no event to wait for.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// A process that is killed with this. It appends what it says to a file.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(super) fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).unwrap();
        let output = file.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(output).stderr(file).spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { child, log: log.to_owned() }
    }

    /// As the kernel does when there is no memory left.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As systemd ends it. Gives its exit code.
    pub(super) async fn terminate(mut self) -> Option<i32> {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap();
        until("it ends", async || self.child.try_wait().unwrap()).await.code()
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if it has ended by itself.
    pub(super) fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended: {ended:?}\n{}", self.said());
    }

    /// All that it has said, in all its lives.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has ended, which is the aim.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The path that a variable names.
pub(super) fn path(variable: &str) -> PathBuf {
    let path = env::var_os(variable);
    let path = path.unwrap_or_else(|| panic!("`{variable}` is not set: run `cargo xtask test --full nats`"));
    fs::canonicalize(&path).unwrap_or_else(|error| panic!("`{variable}` names `{}`: {error}", path.display()))
}

/// The number that a variable has, or else this.
pub(super) fn number<T: FromStr>(variable: &str, or_else: T) -> T {
    let parse = |text: String| {
        let parsed = text.parse().ok();
        parsed.unwrap_or_else(|| panic!("`{variable}` is `{text}`, and no number of its kind"))
    };
    env::var(variable).map_or(or_else, parse)
}

/// Waits until `look` gives a value.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
