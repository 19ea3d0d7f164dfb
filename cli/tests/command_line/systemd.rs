//! `weir run` as a service of systemd. The test plays systemd's end of the notify socket.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixStream},
    },
    process::Command,
    time::Duration,
};

use nix::{
    sys::{
        ptrace,
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use rustix::process::Signal;
use tempfile::TempDir;

use super::support::{PUPPET, PUPPETS, Running, configured, let_go, places, slow, weir};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The watchdog's period. Main pings twice in it.
const WATCHDOG: Duration = Duration::from_millis(200);

struct Systemd {
    socket: UnixDatagram,
    /// The value of `NOTIFY_SOCKET`.
    name: String,
}

type Told = BTreeMap<String, String>;

impl Systemd {
    fn at_path(dir: &TempDir) -> Self {
        let path = dir.path().join("notify");
        Self { socket: UnixDatagram::bind(&path).unwrap(), name: path.to_str().unwrap().to_owned() }
    }

    fn at_abstract_name() -> Self {
        let name = format!("weir-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self { socket: UnixDatagram::bind_addr(&address).unwrap(), name: format!("@{name}") }
    }

    fn run(&self, dir: TempDir) -> Running {
        let mut command = weir(dir.path());
        command.args(["run", "weir.toml"]).env("NOTIFY_SOCKET", &self.name);
        Running::spawn(dir, command)
    }

    /// The same with a watchdog for the process `pid`, or for itself if that is `$$`.
    fn watch(&self, dir: TempDir, pid: &str) -> Running {
        let weir = weir(dir.path());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("WATCHDOG_PID={pid} exec \"$0\" run weir.toml")]);
        shell.arg(weir.get_program()).current_dir(dir.path()).env_clear();
        shell.envs(places(dir.path())).env("NOTIFY_SOCKET", &self.name);
        shell.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        Running::spawn(dir, shell)
    }

    /// The next notification within `time`.
    fn told_within(&self, time: Duration) -> Option<Told> {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let mut buffer = [0; 4096];
        let received = loop {
            match self.socket.recv(&mut buffer) {
                // A stopped process interrupts a wait with a timeout.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        match received {
            Ok(length) => {
                let text = str::from_utf8(&buffer[..length]).unwrap();
                let variable = |line: &str| {
                    let (name, value) = line.split_once('=').unwrap();
                    (name.to_owned(), value.to_owned())
                };
                Some(text.lines().map(variable).collect())
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                None
            }
        }
    }

    fn told(&self) -> Told {
        self.told_within(PATIENCE).expect("it is told nothing")
    }

    /// Expects a ping as the next notification.
    fn pinged(&self) {
        let told = self.told();
        assert!(told.contains_key("WATCHDOG"), "{told:?}");
        assert!(told.keys().all(|name| name == "WATCHDOG" || name == "STATUS"), "{told:?}");
    }

    /// The notifications up to `name`, without pings.
    fn until(&self, name: &str) -> Vec<Told> {
        let mut all = Vec::new();
        while all.last().is_none_or(|last: &Told| !last.contains_key(name)) {
            all.extend(Some(self.told()).filter(|told| !told.contains_key("WATCHDOG")));
        }
        all
    }

    /// The unread notifications, without pings.
    fn rest(&self) -> Vec<Told> {
        std::iter::from_fn(|| self.told_within(Duration::from_millis(1)))
            .filter(|told| !told.contains_key("WATCHDOG"))
            .collect()
    }
}

fn monotonic_usec() -> i128 {
    match sd_notify::NotifyState::monotonic_usec_now().unwrap() {
        sd_notify::NotifyState::MonotonicUsec(time) => time,
        other => panic!("{other}"),
    }
}

fn told<const N: usize>(variables: [(&str, &str); N]) -> Told {
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn ready(status: &str) -> Told {
    told([("READY", "1"), ("STATUS", status)])
}

fn stopping() -> Told {
    told([("STOPPING", "1")])
}

#[test]
fn it_is_told_of_start_and_stop_once_each_and_by_whoever_stops_it() {
    type Stop = fn(&Running);
    let by_signal: Stop = |main| main.signal(Signal::TERM);
    let by_command: Stop = |main| _ = main.weir(&["shutdown"]).good();
    for stop in [by_signal, by_command] {
        let dir = configured(PUPPETS);
        let systemd = Systemd::at_path(&dir);
        let mut main = systemd.run(dir);
        assert_eq!(systemd.told(), ready("1 of 3 extensions are ready"));
        stop(&main);
        let (status, log) = main.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(systemd.rest(), [stopping()]);
    }
}

#[test]
fn it_is_told_at_a_socket_without_a_path() {
    let systemd = Systemd::at_abstract_name();
    let _main = systemd.run(configured(""));
    assert_eq!(systemd.told(), ready("0 of 0 extensions are ready"));
}

#[test]
fn a_socket_that_nobody_has_is_a_warning() {
    let dir = configured("");
    let mut command = weir(dir.path());
    command.args(["run", "weir.toml"]).env("NOTIFY_SOCKET", "/nowhere/notify");
    let mut main = Running::spawn(dir, command);
    main.until("WARN cannot tell the service manager [Ready, ");
    main.weir(&["ps"]).good();
}

#[test]
fn ready_waits_for_the_slowest_extension_and_pings_do_not() {
    let dir = configured(&(PUPPET.to_owned() + &slow("start")));
    let systemd = Systemd::at_path(&dir);
    let mut main = systemd.watch(dir, "$$");
    main.until("the control socket is");
    while main.json(&["status", "--json", "slow"])["state"] != "starting" {}
    (0..3).for_each(|_| systemd.pinged());
    let_go(&main);
    assert_eq!(systemd.until("READY"), [ready("2 of 2 extensions are ready")]);
}

#[test]
fn a_start_that_a_shutdown_cuts_short_is_never_ready() {
    let dir = configured(&(PUPPET.to_owned() + &slow("start")));
    let systemd = Systemd::at_path(&dir);
    let mut main = systemd.run(dir);
    main.until("the control socket is");
    // Wait until it runs: a shutdown ends a load at once.
    while main.json(&["status", "--json", "puppet"])["received"] == 0 {}
    let mut shutdown = main.command(&["shutdown"]).spawn().unwrap();
    assert_eq!(systemd.told(), stopping());
    let_go(&main);
    assert!(shutdown.wait().unwrap().success());
    main.wait();
    assert_eq!(systemd.rest(), []);
}

#[test]
fn pings_go_on_until_the_last_extension_has_ended() {
    let dir = configured(&(PUPPET.to_owned() + &slow("stop")));
    let systemd = Systemd::at_path(&dir);
    let mut main = systemd.watch(dir, "$$");
    systemd.until("READY");
    main.signal(Signal::TERM);
    assert_eq!(systemd.until("STOPPING"), [stopping()]);
    (0..3).for_each(|_| systemd.pinged());
    let_go(&main);
    assert_eq!(main.wait().0.code(), Some(0));
    assert_eq!(systemd.rest(), []);
}

#[test]
fn a_reload_lasts_until_what_is_new_is_ready_whoever_asks_for_it() {
    type Ask = fn(&Running) -> Option<UnixStream>;
    let by_signal: Ask = |main| {
        main.signal(Signal::HUP);
        None
    };
    let by_request: Ask = |main| {
        let mut stream = UnixStream::connect(main.socket()).unwrap();
        stream.write_all(b"POST /v1/reload HTTP/1.1\r\nHost: weir\r\nContent-Length: 0\r\n\r\n").unwrap();
        Some(stream)
    };
    for ask in [by_signal, by_request] {
        let dir = configured(PUPPET);
        let systemd = Systemd::at_path(&dir);
        let main = systemd.watch(dir, "$$");
        systemd.until("READY");
        let file = main.path().join("weir.toml");
        fs::write(&file, fs::read_to_string(&file).unwrap() + &slow("start")).unwrap();

        let before = monotonic_usec();
        let _asked = ask(&main);
        let reloading = systemd.until("RELOADING").pop().unwrap();
        assert_eq!(reloading["RELOADING"], "1");
        let since: i128 = reloading["MONOTONIC_USEC"].parse().unwrap();
        assert!((before..=monotonic_usec()).contains(&since), "{reloading:?}");
        (0..3).for_each(|_| systemd.pinged());
        let_go(&main);
        assert_eq!(systemd.until("READY"), [ready("2 of 2 extensions are ready")]);
    }
}

#[test]
fn a_reload_that_is_refused_ends_too_and_the_log_says_why() {
    let dir = configured(PUPPETS);
    let systemd = Systemd::at_path(&dir);
    let mut main = systemd.run(dir);
    systemd.until("READY");
    let file = main.path().join("weir.toml");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{right}\nmemroy = 1")).unwrap();
    main.signal(Signal::HUP);
    systemd.until("RELOADING");
    assert_eq!(systemd.told(), ready("1 of 3 extensions are ready"));
    let line = main.until("WARN the configuration was not changed");
    assert!(line.contains("unknown key `memroy`"), "{line}");

    fs::write(&file, right).unwrap();
    main.signal(Signal::HUP);
    systemd.until("RELOADING");
    assert_eq!(systemd.told(), ready("1 of 3 extensions are ready"));
    main.until("INFO reloaded: 0 added, 0 removed, 0 changed, 0 failed");
}

#[test]
fn the_status_follows_with_the_pings() {
    let dir = configured(PUPPETS);
    let systemd = Systemd::at_path(&dir);
    let main = systemd.watch(dir, "$$");
    systemd.until("READY");
    main.weir(&["start", "spare"]).good();
    let now = told([("WATCHDOG", "1"), ("STATUS", "2 of 3 extensions are ready")]);
    while systemd.told() != now {}
}

#[test]
fn a_watchdog_of_another_process_is_not_pinged() {
    let dir = configured("");
    let systemd = Systemd::at_path(&dir);
    let _main = systemd.watch(dir, "1");
    assert_eq!(systemd.told(), ready("0 of 0 extensions are ready"));
    assert_eq!(systemd.told_within(WATCHDOG * 5), None);
}

#[test]
fn pings_stop_while_the_worker_thread_is_stuck_and_only_then() {
    let dir = configured(PUPPET);
    let systemd = Systemd::at_path(&dir);
    let main = systemd.watch(dir, "$$");
    systemd.until("READY");
    for _ in 0..2 {
        (0..3).for_each(|_| systemd.pinged());
        let stuck = StuckThread::of(&main, "weir-main");
        let is_silent = |_| systemd.told_within(WATCHDOG * 2).is_none();
        assert!((0..1000).any(is_silent), "pings go on");
        drop(stuck);
        (0..3).for_each(|_| systemd.pinged());
        assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo still here"]).good(), "still here");
    }
}

/// A stopped thread of a process while its other threads run, as under a debugger.
struct StuckThread(Pid);

impl StuckThread {
    fn of(main: &Running, name: &str) -> Self {
        let mut threads = fs::read_dir(format!("/proc/{}/task", main.pid())).unwrap().map(Result::unwrap);
        let is_it = |thread: &fs::DirEntry| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        let thread = threads.find(is_it).unwrap().file_name().into_string().unwrap();
        let thread = Pid::from_raw(thread.parse().unwrap());
        ptrace::seize(thread, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(thread).unwrap();
        waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
        Self(thread)
    }
}

impl Drop for StuckThread {
    fn drop(&mut self) {
        ptrace::detach(self.0, None).unwrap();
    }
}
