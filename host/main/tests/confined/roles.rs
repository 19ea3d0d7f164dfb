//! What this program is for a test: the process that compiles, taken over or not, on a kernel that is played.

use std::{
    env,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{ExitCode, exit},
    sync::OnceLock,
    thread,
};

use caps::{CapSet, Capability};
use log::{LevelFilter, Log, Metadata, Record};
use rustix::process::getppid;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tracing::Level;
use weir_host::{
    ExtensionConfig,
    component::{self, Compilation, compile_helper},
};

use crate::{
    ECHO,
    attempts::{ALLOWED, ATTEMPTS, Attempt, Surroundings},
    this_program, uncached,
};

/// The name of the cache's key.
pub(crate) const KEY: &str = "key";

/// What a machine has and allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Whole,
    WithoutLandlock,
    WithoutSeccomp,
    WithoutBoth,
    /// Root, if the process is root, may not end processes of others.
    WithoutKill,
    /// A policy ends processes that want Landlock.
    EndsForLandlock,
}

impl Kernel {
    pub(crate) const THAT_COMPILE: [Self; 5] =
        [Self::Whole, Self::WithoutLandlock, Self::WithoutSeccomp, Self::WithoutBoth, Self::WithoutKill];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::WithoutLandlock => "without-landlock",
            Self::WithoutSeccomp => "without-seccomp",
            Self::WithoutBoth => "without-both",
            Self::WithoutKill => "without-kill",
            Self::EndsForLandlock => "ends-for-landlock",
        }
    }

    fn of(name: &str) -> Self {
        Self::THAT_COMPILE
            .into_iter()
            .chain([Self::EndsForLandlock])
            .find(|kernel| kernel.name() == name)
            .unwrap()
    }

    /// Refuses from here on what this kernel lacks, as it would.
    fn play(self) {
        let lacks = match self {
            Self::Whole => return,
            Self::WithoutKill => {
                return caps::drop(None, CapSet::Effective, Capability::CAP_KILL).unwrap();
            }
            Self::WithoutLandlock | Self::EndsForLandlock => &[libc::SYS_landlock_create_ruleset][..],
            Self::WithoutSeccomp => &[libc::SYS_seccomp],
            Self::WithoutBoth => &[libc::SYS_landlock_create_ruleset, libc::SYS_seccomp],
        };
        let rules = lacks.iter().map(|call| (*call, Vec::new())).collect();
        let unknown = match self {
            Self::EndsForLandlock => SeccompAction::KillProcess,
            _ => SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        };
        let this = env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, unknown, this).unwrap();
        apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    }
}

/// Another task of this program than to run the tests.
pub(crate) enum Role {
    /// To compile.
    Compile(Kernel),
    /// To compile, and to make an attempt meanwhile.
    TakenOver(Kernel, Attack),
    /// To make an attempt, and nothing else.
    Unconfined(Attack),
    /// To compile, with a second thread.
    WithThread,
    /// To have a component compiled twice, on a kernel without both.
    Twice,
}

impl Role {
    /// Returns none for the process that tests.
    pub(crate) fn of_this_process() -> Option<Self> {
        let words: Vec<String> = env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match words[..] {
            ["compile", kernel] => Self::Compile(Kernel::of(kernel)),
            ["taken-over", kernel, attempt, dir, tcp] => {
                Self::TakenOver(Kernel::of(kernel), Attack::new(attempt, dir, tcp))
            }
            ["unconfined", attempt, dir, tcp] => Self::Unconfined(Attack::new(attempt, dir, tcp)),
            ["with-thread"] => Self::WithThread,
            ["twice"] => Self::Twice,
            _ => return None,
        })
    }

    pub(crate) fn play(self) -> ExitCode {
        match self {
            Self::Compile(kernel) => {
                kernel.play();
                compile_helper()
            }
            Self::TakenOver(kernel, attack) => {
                static ATTACK: OnceLock<Attack> = OnceLock::new();
                kernel.play();
                log::set_logger(ATTACK.get_or_init(|| attack)).unwrap();
                log::set_max_level(LevelFilter::Trace);
                compile_helper()
            }
            Self::Unconfined(attack) => {
                io::stdout().write_all(attack.outcome().as_bytes()).unwrap();
                ExitCode::SUCCESS
            }
            Self::WithThread => {
                thread::spawn(thread::park);
                compile_helper()
            }
            Self::Twice => {
                tracing_subscriber::fmt()
                    .with_max_level(Level::WARN)
                    .with_ansi(false)
                    .with_writer(io::stderr)
                    .init();
                let arguments = vec!["compile".into(), Kernel::WithoutBoth.name().into()];
                let compilation = Compilation::Child { program: this_program(), arguments };
                let extension = ExtensionConfig::new("a".parse().unwrap(), ECHO);
                for _ in 0..2 {
                    component::check(&uncached(), &extension, &compilation).unwrap();
                }
                ExitCode::SUCCESS
            }
        }
    }
}

/// One attempt, and what it is made on.
pub(crate) struct Attack {
    attempt: &'static Attempt,
    dir: PathBuf,
    tcp: String,
    open: File,
}

impl Attack {
    fn new(attempt: &str, dir: &str, tcp: &str) -> Self {
        let attempt = ATTEMPTS.iter().find(|one| one.name == attempt).unwrap();
        let open = File::options().read(true).write(true).open(Path::new(dir).join(KEY)).unwrap();
        Self { attempt, dir: dir.into(), tcp: tcp.to_owned(), open }
    }

    fn outcome(&self) -> String {
        let Self { attempt, dir, tcp, open } = self;
        match (attempt.make)(&Surroundings { dir, tcp, open, starter: getppid().unwrap() }) {
            Ok(()) => ALLOWED.to_owned(),
            Err(error) => format!("refused: {error}"),
        }
    }
}

impl Log for Attack {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        if record.target().starts_with("cranelift_codegen") {
            let outcome = self.outcome();
            // The answer that a component is not valid, for this reason.
            let answer = [&[1], &(outcome.len() as u64).to_le_bytes()[..], outcome.as_bytes()].concat();
            io::stdout().write_all(&answer).unwrap();
            io::stdout().flush().unwrap();
            exit(0);
        }
    }

    fn flush(&self) {}
}
