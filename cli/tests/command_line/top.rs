//! `weir top` on a terminal: what it shows, and how it leaves the terminal.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZeroU16,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Stdio,
};

use nix::{
    pty::{OpenptyResult, Winsize, openpty},
    sys::termios::{LocalFlags, Termios, tcgetattr},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, WaitOptions, waitpid},
};

use super::support::{Killed, PUPPETS, Running, until};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// The longest time without anything new.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// `weir top` with a terminal of its own. The test keeps the command's end open, to see its modes.
struct View {
    child: Killed,
    /// None: the terminal is gone.
    keyboard: Option<File>,
    inside: Option<OwnedFd>,
    before: Termios,
    /// What was written, as it came.
    seen: String,
    /// What it shows.
    screen: vt100::Parser,
}

impl View {
    fn open(main: &Running, columns: u16, sort: &str) -> Self {
        let [rows, columns] = [24, columns].map(|cells| NonZeroU16::new(cells).unwrap());
        let size = Winsize { ws_row: rows.get(), ws_col: columns.get(), ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        // A process that has a copy would keep the terminal open.
        fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
        fcntl_setfd(&slave, FdFlags::CLOEXEC).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut command = main.command(&["top", "--interval", "100ms", "--sort", sort]);
        command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        // What stops the view must not stop the test.
        let child = Killed(command.process_group(0).spawn().unwrap());
        drop(command);
        let (seen, screen) = (String::new(), vt100::Parser::new(rows, columns, 0));
        Self { child, keyboard: Some(master.into()), inside: Some(slave), before, seen, screen }
    }

    fn shown(main: &Running) -> Self {
        let mut view = Self::open(main, 100, "name");
        // The last row of all.
        view.until_shown("spare");
        view
    }

    /// Waits for what is written in one piece. A text is not: only cells that change are written.
    fn until(&mut self, sequence: &str) {
        while !self.seen.contains(sequence) {
            self.read();
        }
    }

    fn until_shown(&mut self, text: &str) {
        while !self.screen.screen().contents().contains(text) {
            self.read();
        }
    }

    fn until_gone(&mut self, text: &str) {
        while self.screen.screen().contents().contains(text) {
            self.read();
        }
    }

    fn read(&mut self) {
        let keyboard = self.keyboard.as_mut().unwrap();
        let is_in_time = poll(&mut [PollFd::new(keyboard, PollFlags::IN)], Some(&PATIENCE)).unwrap() > 0;
        assert!(is_in_time, "nothing more is shown:\n{}", self.screen.screen().contents());
        let mut bytes = [0; 4096];
        let read = keyboard.read(&mut bytes).unwrap();
        self.screen.process(&bytes[..read]);
        self.seen += &String::from_utf8_lossy(&bytes[..read]);
    }

    /// All that the view has written, once it has ended.
    fn rest(&mut self) -> &str {
        self.inside = None;
        // Linux says EIO at the end.
        let _end = self.keyboard.as_mut().unwrap().read_to_string(&mut self.seen);
        &self.seen
    }

    fn press(&mut self, keys: &str) {
        self.seen.clear();
        self.keyboard.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn modes(&self) -> Termios {
        tcgetattr(self.inside.as_ref().unwrap().as_fd()).unwrap()
    }

    /// Waits for the end, and checks that the terminal is as it was.
    fn assert_left_clean(mut self) {
        self.until(LEAVE);
        self.until("\x1b[?25h");
        assert_eq!(self.child.0.wait().unwrap().code(), Some(0), "{:?}", self.seen);
        assert_eq!(self.modes(), self.before);
    }
}

#[test]
fn quitting_top_leaves_the_terminal_as_it_was() {
    let main = Running::with(PUPPETS);
    for keys in ["q", "\x1b", "\x03"] {
        let mut view = View::shown(&main);
        assert!(view.seen.contains(ENTER), "{:?}", view.seen);
        assert!(!view.modes().local_flags.contains(LocalFlags::ICANON));
        view.press(keys);
        view.assert_left_clean();
    }
}

#[test]
fn a_signal_ends_top_and_leaves_the_terminal_as_it_was() {
    let main = Running::with(PUPPETS);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let view = View::shown(&main);
        view.child.signal(signal);
        view.assert_left_clean();
    }
}

#[test]
fn top_ends_without_a_panic_when_its_terminal_goes_away_with_stderr() {
    let main = Running::with(PUPPETS);
    let mut view = View::shown(&main);
    // Nothing tells the process: this is not the terminal that it is controlled from.
    view.inside = None;
    view.keyboard = None;
    let status = until("the end of the view", || view.child.0.try_wait().unwrap());
    // Neither a panic nor an abort. It may notice the end itself, or fail to draw first.
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}

#[test]
fn top_shows_what_it_sorts_by_in_twenty_columns_too() {
    let main = Running::with(PUPPETS);
    let mut view = View::open(&main, 20, "cpu");
    // The rows come after the line above them.
    view.until_shown("puppet");
    let shown = view.screen.screen().contents();
    assert!(shown.contains(" NAME") && shown.contains("CPU%▼"), "{shown}");
    view.press("q");
    view.assert_left_clean();
}

#[test]
fn top_gives_the_terminal_to_the_shell_and_takes_it_back() {
    let main = Running::with(PUPPETS);
    let mut view = View::shown(&main);
    for is_key in [true, false] {
        if is_key {
            view.press("\x1a");
        } else {
            view.child.signal(Signal::TSTP);
        }
        let view_pid = Pid::from_child(&view.child.0);
        let stopped = waitpid(Some(view_pid), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(stopped.stopped(), "{stopped:?}: {:?}", view.rest());
        view.until(LEAVE);
        assert_eq!(view.modes(), view.before);
        view.seen.clear();
        view.child.signal(Signal::CONT);
        view.until(ENTER);
        view.until_shown("spare");
        view.seen.clear();
    }
    view.press("q");
    view.assert_left_clean();
}

#[test]
fn an_order_of_top_is_given_once_after_one_question() {
    let main = Running::with(PUPPETS);
    let mut view = View::shown(&main);
    view.press("/puppet\r");
    view.until_gone("spare");
    view.press("R");
    view.until_shown("y/n");
    assert_eq!(main.json(&["status", "--json", "puppet"])["restarts"], 0);
    view.press("yyy");
    view.until_shown("done,");
    assert_eq!(main.json(&["status", "--json", "puppet"])["restarts"], 1);
    let history = main.json(&["history", "--json", "puppet"]);
    let orders = history["history"].as_array().unwrap().iter().filter(|entry| entry["event"] == "asked");
    assert_eq!(orders.count(), 1, "{history}");
    view.press("q");
    view.assert_left_clean();
}

#[test]
fn top_stays_when_main_ends_and_goes_on_with_the_next() {
    let main = Running::with(PUPPETS);
    let mut view = View::shown(&main);
    main.signal(Signal::KILL);
    view.until_shown("OLD");
    view.until_shown("cannot");
    let _next = Running::start(main.into_dir());
    view.until_shown("again:");
    view.press("q");
    view.assert_left_clean();
}
