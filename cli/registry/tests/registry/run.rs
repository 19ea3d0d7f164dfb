//! A run of the program, in a directory of its own that is also its home.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

pub(crate) struct Place(pub(crate) TempDir);

/// How a run ended: its exit code, what it printed, and its error.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-registry"));
        command.args(arguments).current_dir(self.path()).env_clear().env("HOME", self.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path().display()));
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn pull(&self, reference: &str) -> Ended {
        self.run(&["pull", reference, "pulled", "--timeout", "20s"])
    }

    /// All that is here.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Fails unless it ended well. Returns what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, &*self.stderr), (0, ""), "{self:?}");
        self.stdout
    }

    /// Fails unless it ended with this code and an error of one line that has this text.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, text: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(text), "`{text}` is not in {self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert_eq!(self.stdout, "");
    }
}
