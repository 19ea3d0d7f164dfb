//! Slow compilations delay nothing else.
//!
//! The test stops the compiling processes: anything that waits for them would never end.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::support::{Done, PUPPET, Running, until, with_own_component};

const SLOWLY: &str = "limits.compile-timeout = '1h'\n";

const SLOW: u8 = 16;

/// The compiling children of a Main. A child before its `exec` still has Main's arguments, and stopping it would
/// stop Main, which waits for it. A child that has ended has no arguments.
fn children(main: u32) -> Vec<Pid> {
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok();
    let arguments = |process: &Path| fs::read(process.join("cmdline")).ok();
    let of_main = arguments(Path::new(&format!("/proc/{main}")));
    let child = |process: fs::DirEntry| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        let its_own =
            arguments(&process.path()).filter(|its| !its.is_empty() && Some(its) != of_main.as_ref());
        Pid::from_raw(pid).filter(|_| parent(&stat) == Some(main) && its_own.is_some())
    };
    fs::read_dir("/proc").unwrap().filter_map(|process| child(process.unwrap())).collect()
}

/// Whether the child has read the puppet, except what its pipe holds. Until then Main is busy feeding it.
fn has_component(child: Pid) -> bool {
    let io = fs::read_to_string(format!("/proc/{}/io", child.as_raw_pid())).unwrap_or_default();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok());
    read >= Some(fs::metadata(test_guests::path("puppet")).unwrap().len())
}

pub(super) fn stop_compiling(main: u32, number: usize) -> Vec<Pid> {
    until("it is compiled", || {
        let compiling: Vec<_> = children(main).into_iter().filter(|child| has_component(*child)).collect();
        let stopped = compiling.iter().all(|child| kill_process(*child, Signal::STOP).is_ok());
        (stopped && compiling.len() == number).then_some(compiling)
    })
}

fn write_puppet(path: &Path, mark: u8) {
    write_marked("puppet", path, mark);
}

/// Writes a guest whose bytes differ by this mark from others.
fn write_marked(guest: &str, path: &Path, mark: u8) {
    let mut component = fs::read(test_guests::path(guest)).unwrap();
    // A custom section of 2 bytes, with the name `m`.
    component.extend([0, 3, 1, b'm', mark]);
    let new = path.with_extension("new");
    fs::write(&new, component).unwrap();
    fs::rename(new, path).unwrap();
}

fn begin(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn own_name(main: &Running) -> Done {
    main.weir(&["call", "puppet@1", "run", "--raw", "own-name"])
}

#[test]
fn what_is_in_the_cache_starts_while_others_are_compiled() {
    let first = Running::start(with_own_component(PUPPET));
    first.signal(Signal::TERM);
    let dir = first.into_dir();
    let slow = |number: u8| {
        write_puppet(&dir.path().join(format!("slow-{number}.wasm")), number);
        format!("[[extension]]\nid = 'slow-{number}'\npath = 'slow-{number}.wasm'\n{SLOWLY}")
    };
    // Two compile at once. Some may end before any is stopped.
    let slow: String = (0..SLOW).map(slow).collect();
    fs::write(dir.path().join("weir.toml"), format!("{slow}{PUPPET}")).unwrap();
    let mut main = Running::begin(dir);
    main.until("the control socket is");
    stop_compiling(main.pid(), 2);

    let state = |id: &str| main.json(&["status", "--json", id])["state"].clone();
    until("the puppet is ready", || (state("puppet") == "ready").then_some(()));
    assert_eq!(own_name(&main).good(), "puppet");
    assert_eq!(children(main.pid()).len(), 2);
    let slow = |wanted: &str| (0..SLOW).filter(|number| state(&format!("slow-{number}")) == wanted).count();
    assert!(slow("starting") > 0);
    let compiled =
        |number: &u8| !main.json(&["status", "--json", &format!("slow-{number}")])["compiling"].is_null();
    assert_eq!((0..SLOW).filter(compiled).count(), 2);
    let table = main.weir(&["ps"]).good();
    let compiled = table.lines().find(|line| line.contains(" compiling ")).unwrap();
    let status = main.weir(&["status", compiled.split(' ').next().unwrap()]).good();
    assert!(status.contains("state     compiling: ") && status.contains(" KiB, since 20"), "{status}");
}

#[test]
fn an_extension_serves_until_what_comes_after_its_restart_is_compiled() {
    let main = Running::start(with_own_component(&format!("{PUPPET}{SLOWLY}")));
    let hash = || main.json(&["status", "--json", "puppet"])["hash"].clone();
    let before = hash();
    let file = main.path().join("puppet.wasm");
    let restart = || begin(main.command(&["restart", "puppet"]));

    write_puppet(&file, 1);
    let asked = restart();
    let first = stop_compiling(main.pid(), 1);
    assert_eq!(own_name(&main).good(), "puppet");
    // A later request reads the file as it is then, and serves both.
    write_puppet(&file, 2);
    let again = restart();
    let compiling = until("the other is compiled", || {
        let other = children(main.pid()).into_iter().find(|child| !first.contains(child))?;
        kill_process(other, Signal::STOP).ok()?;
        Some(other)
    });
    assert_eq!(own_name(&main).good(), "puppet");
    assert_eq!(hash(), before);
    kill_process(compiling, Signal::CONT).unwrap();
    for asked in [asked, again] {
        assert_eq!(end(asked).good(), "`puppet` is ready\n");
    }
    assert_ne!(hash(), before);
    assert_eq!(main.json(&["status", "--json", "puppet"])["restarts"], 1);

    write_puppet(&file, 3);
    let asked = restart();
    stop_compiling(main.pid(), 1);
    assert_eq!(main.weir(&["stop", "puppet"]).good(), "`puppet` is stopped\n");
    assert_eq!(end(asked).stderr, "error: `puppet` did not start: it was stopped\n");
    until("the compiler is gone", || children(main.pid()).is_empty().then_some(()));

    main.weir(&["start", "puppet"]).good();
    fs::write(&file, "no component").unwrap();
    assert_eq!(end(restart()).code, 8);
    assert_eq!(main.json(&["status", "--json", "puppet"])["state"], "failed");
}

#[test]
fn a_cache_too_small_for_the_code_in_use_is_told_once() {
    const TICK: &str = "grants.env = { DO = 'tick 0' }\nlimits.log-rate = 1\n";
    let write = |path: &Path, mark: u8| write_marked("plain", path, mark);
    let dir = with_own_component(&format!("[[extension]]\nid = 'p0'\npath = '0.wasm'\n{TICK}"));
    write(&dir.path().join("0.wasm"), 0);
    let first = Running::start(dir);
    first.signal(Signal::TERM);
    let dir = first.into_dir();
    let entries = fs::read_dir(dir.path().join("cache")).unwrap();
    let entry = entries.map(|entry| entry.unwrap().metadata().unwrap().len()).max().unwrap();
    let extension = |number: u8| {
        write(&dir.path().join(format!("{number}.wasm")), number);
        format!("[[extension]]\nid = 'p{number}'\npath = '{number}.wasm'\n{TICK}")
    };
    let extensions: String = (0..4).map(extension).collect();
    // Room for two of four, and then for all of them and one that takes the place of another.
    let config = |size: u64| format!("main.cache-size = {size}\n{extensions}");
    fs::write(dir.path().join("weir.toml"), config(entry * 5 / 2)).unwrap();
    let mut main = Running::begin(dir);
    let told = main.until("`main.cache-size` is");
    assert!(told.contains("the next start compiles some of it again"), "{told}");
    main.until("extensions are ready");
    write(&main.path().join("0.wasm"), 10);
    assert_eq!(main.weir(&["restart", "p0"]).good(), "`p0` is ready\n");
    main.signal(Signal::TERM);
    let (_, log) = main.wait();
    assert!(!log.contains("main.cache-size"), "{log}");

    let dir = main.into_dir();
    fs::write(dir.path().join("weir.toml"), config(entry * 11 / 2)).unwrap();
    let main = Running::start(dir);
    for number in 11..16 {
        write(&main.path().join("0.wasm"), number);
        assert_eq!(main.weir(&["restart", "p0"]).good(), "`p0` is ready\n");
    }
    main.signal(Signal::TERM);
    let mut main = main;
    let (_, log) = main.wait();
    assert!(!log.contains("main.cache-size"), "{log}");
}
