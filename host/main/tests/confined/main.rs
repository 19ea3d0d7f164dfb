//! A compiler that an attack has taken over gets nowhere: the kernel refuses it files, connections and other processes.
//!
//! The process that compiles is this program. Its logger, which Cranelift calls in the middle of compiling, is the
//! attack: it makes one attempt, and answers in the compiler's place. A filter plays older kernels: it refuses what they
//! lack. Its own main function, because the program compiles before it has threads.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attempts;
mod roles;

use std::{
    env, fs,
    io::Read,
    net::TcpListener,
    os::unix::net::UnixListener,
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
};

use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use libtest_mimic::{Arguments, Trial};
use rustix::process::geteuid;
use tempfile::TempDir;
use weir_host::{
    ExtensionConfig, MainConfig,
    component::{self, Compilation, LoadFault},
};

use crate::{
    attempts::{ALLOWED, ATTEMPTS, Attempt, Fate, SOCKET},
    roles::{KEY, Kernel, Role},
};

/// A whole extension.
const ECHO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/echo.wasm");

fn main() -> ExitCode {
    if let Some(role) = Role::of_this_process() {
        return role.play();
    }
    let tests: [(&str, fn()); 10] = [
        ("a_compiler_that_is_taken_over_gets_nowhere", || all_are_refused(Kernel::Whole)),
        ("nor_does_it_without_landlock", || all_are_refused(Kernel::WithoutLandlock)),
        ("without_seccomp_it_has_no_file_no_connection_and_no_other_process", refused_without_seccomp),
        ("what_it_tries_would_succeed_without_confinement", all_succeed_without_confinement),
        ("the_process_that_compiles_has_no_rights", the_process_has_no_rights),
        ("root_that_could_not_end_it_stays_its_user_without_capabilities", without_the_right_to_end_it),
        ("a_policy_that_ends_it_before_it_has_the_component_is_no_attack", a_policy_is_no_attack),
        ("with_a_second_thread_it_does_not_compile", it_has_one_thread),
        ("without_landlock_and_seccomp_it_compiles", it_compiles_on_every_kernel),
        ("what_a_kernel_lacks_is_told_once", what_a_kernel_lacks_is_told_once),
    ];
    let test = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(test).collect()).exit_code()
}

/// What attempts are made on, and a component to compile.
struct Stage {
    dir: TempDir,
    tcp: TcpListener,
    _unix: UnixListener,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let component = wat::parse_str(
            "(component (core module (func (export \"f\")))
                (instance $run) (export \"wasi:cli/run@0.2.0\" (instance $run)))",
        );
        let component = component.unwrap();
        for (name, content) in [("a.wasm", &component[..]), (KEY, b"key"), ("unwanted", b"")] {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let _unix = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        Self { dir, tcp: TcpListener::bind("127.0.0.1:0").unwrap(), _unix }
    }

    fn arguments(&self, attempt: &Attempt) -> [String; 3] {
        let tcp = self.tcp.local_addr().unwrap().to_string();
        [attempt.name.to_owned(), self.dir.path().to_str().unwrap().to_owned(), tcp]
    }

    /// What Main says of the component that takes the compiler over for this attempt.
    fn fault(&self, kernel: Kernel, attempt: &Attempt) -> LoadFault {
        let words = ["taken-over".to_owned(), kernel.name().to_owned()].into_iter();
        let arguments = words.chain(self.arguments(attempt)).map(Into::into).collect();
        let compilation = Compilation::Child { program: this_program(), arguments };
        let extension = ExtensionConfig::new("a".parse().unwrap(), self.dir.path().join("a.wasm"));
        component::check(&uncached(), &extension, &compilation).unwrap_err().fault
    }
}

fn this_program() -> PathBuf {
    env::current_exe().unwrap()
}

/// Main, not with the cache of the developer.
fn uncached() -> MainConfig {
    let mut main = MainConfig::default();
    main.cache_size = Some(0);
    main
}

fn has_landlock() -> bool {
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    required.handle_access(AccessFs::Execute).and_then(Ruleset::create).is_ok()
}

fn all_are_refused(kernel: Kernel) {
    let stage = Stage::new();
    for attempt in &ATTEMPTS {
        let fault = stage.fault(kernel, attempt);
        let fate = match &fault {
            LoadFault::Attack => Some(Fate::Ends),
            LoadFault::Compile(said) if said == "refused: Operation not permitted (os error 1)" => {
                Some(Fate::Refused)
            }
            LoadFault::Compile(said) if said == "refused: Function not implemented (os error 38)" => {
                Some(Fate::Absent)
            }
            _ => None,
        };
        assert_eq!(fate, Some(attempt.fate), "{}: {fault}", attempt.name);
    }
    assert!(fs::exists(stage.dir.path().join("unwanted")).unwrap());
    assert!(!fs::exists(stage.dir.path().join("entry")).unwrap());
}

fn refused_without_seccomp() {
    // Without both, only the limits are left, and they do not refuse all of these.
    if !has_landlock() {
        eprintln!("not tried: this kernel has no Landlock");
        return;
    }
    let stage = Stage::new();
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.is_refused_twice) {
        let fault = stage.fault(Kernel::WithoutSeccomp, attempt);
        let is_refused = matches!(&fault, LoadFault::Compile(said) if said.starts_with("refused: "));
        assert!(is_refused, "{}: {fault}", attempt.name);
    }
}

fn all_succeed_without_confinement() {
    let stage = Stage::new();
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.is_usual) {
        let mut process = Command::new(this_program());
        let output = process.arg("unconfined").args(stage.arguments(attempt)).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), ALLOWED, "{}", attempt.name);
    }
}

/// The process that compiles, confined and waiting for its standard input.
struct Waiting {
    process: Child,
    /// Its first byte, which says what it lacks.
    missing: u8,
}

impl Waiting {
    fn start(kernel: Kernel) -> Self {
        let mut process = Command::new(this_program());
        process
            .args(["compile", kernel.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = process.spawn().unwrap();
        let mut missing = [0];
        process.stdout.take().unwrap().read_exact(&mut missing).unwrap();
        Self { process, missing: missing[0] }
    }

    fn of(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap()
    }

    fn end(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

fn has(text: &str, line: &[&str]) -> bool {
    text.lines().any(|its| its.split_whitespace().eq(line.iter().copied()))
}

fn assert_no_capabilities(status: &str) {
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert!(has(status, &[set, "0000000000000000"]), "{status}");
    }
}

fn the_process_has_no_rights() {
    let waiting = Waiting::start(Kernel::Whole);
    assert_eq!(waiting.missing == 0x80, has_landlock());
    let (status, limits) = (waiting.of("status"), waiting.of("limits"));
    assert_no_capabilities(&status);
    assert!(has(&status, &["NoNewPrivs:", "1"]) && has(&status, &["Seccomp:", "2"]), "{status}");
    for name in ["core file size", "file size", "open files", "processes"] {
        let mut lines = limits.lines().filter_map(|line| line.strip_prefix(&format!("Max {name} ")));
        let is_none = |rest: &str| rest.split_whitespace().take(2).eq(["0", "0"]);
        assert!(lines.any(is_none), "{name}: {limits}");
    }
    assert_eq!(waiting.of("oom_score_adj"), "1000\n");
    if geteuid().is_root() {
        let nobody = ["65534"; 4];
        assert!(has(&status, &[&["Uid:"][..], &nobody].concat()), "{status}");
        assert!(has(&status, &[&["Gid:"][..], &nobody].concat()), "{status}");
        assert!(has(&status, &["Groups:"]), "{status}");
    }
    waiting.end();
}

fn without_the_right_to_end_it() {
    let waiting = Waiting::start(Kernel::WithoutKill);
    let status = waiting.of("status");
    assert_no_capabilities(&status);
    let own = geteuid().as_raw().to_string();
    assert!(has(&status, &[&["Uid:"][..], &[own.as_str(); 4]].concat()), "{status}");
    assert_eq!(waiting.missing & 1 == 1, geteuid().is_root());
    waiting.end();
}

fn a_policy_is_no_attack() {
    let fault = Stage::new().fault(Kernel::EndsForLandlock, &ATTEMPTS[0]);
    let is_told = matches!(&fault, LoadFault::Compiler(said) if said.contains("signal 31 (SIGSYS)"));
    assert!(is_told && fault.may_pass(), "{fault}");
}

fn it_has_one_thread() {
    let output = Command::new(this_program()).arg("with-thread").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "it has more than one thread: compile before any other is started\n");
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
}

fn it_compiles_on_every_kernel() {
    for kernel in Kernel::THAT_COMPILE {
        let arguments = vec!["compile".into(), kernel.name().into()];
        let compilation = Compilation::Child { program: this_program(), arguments };
        let extension = ExtensionConfig::new("a".parse().unwrap(), ECHO);
        component::check(&uncached(), &extension, &compilation).unwrap();
    }
}

fn what_a_kernel_lacks_is_told_once() {
    let output = Command::new(this_program()).arg("twice").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    let line = "the process that compiles goes without landlock, seccomp, which this machine does not have or does not \
                allow: an attack on the compiler would get further\n";
    assert!(told.ends_with(line) && told.lines().count() == 1, "{told}");
}
