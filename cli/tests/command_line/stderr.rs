//! What extensions write: to a stderr of `weir run` that nobody reads, and in the operator's output.

use rustix::process::Signal;

use super::support::{PUPPET, Running};

/// Logs more than a pipe and Main's buffer hold.
fn flood(main: &Running) {
    let line = format!("log {}", "x".repeat(3000));
    let lines = vec![line.as_str(); 300].join("; ");
    let call = ["call", "puppet@1", "run", "--timeout", "1m", "-"];
    main.weir_with_stdin(&call, format!("all {lines}").as_bytes()).good();
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_nobody_and_what_is_lost_is_counted() {
    let mut main = Running::with(PUPPET);
    flood(&main);
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo still here"]).good(), "still here");
    let lost = main.until(" lost: ");
    assert!(
        lost.contains("  WARN ") && lost.ends_with(" lines lost: stderr was not read fast enough\n"),
        "{lost}"
    );

    // With a reader, the log works again. No line is torn.
    main.weir(&["call", "puppet@1", "run", "--raw", "log and again"]).good();
    main.until("[puppet] and again");
    main.signal(Signal::TERM);
    let (status, rest) = main.wait();
    assert!(status.success() && rest.ends_with(" INFO stopped\n"), "{rest}");
}

#[test]
fn main_ends_though_nobody_reads_its_stderr() {
    let mut main = Running::with(PUPPET);
    flood(&main);
    main.signal(Signal::TERM);
    let status = main.wait_unread().expect("Main has not ended within a minute");
    assert!(status.success(), "{status}");
    let (_, log) = main.wait();
    let whole: Vec<_> = log.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    assert!(!whole.is_empty() && whole.iter().all(|line| line.contains(" [puppet] xxx")), "{log}");
}

/// Characters that reverse text or are invisible.
const UNSEEN: &str = "a\u{61c}b\u{200b}c\u{e0041}d";
const SHOWN: &str = r"a\u{61c}b\u{200b}c\u{e0041}d";

#[test]
fn the_error_of_a_provider_is_one_line_and_forges_none() {
    let main = Running::with(PUPPET);
    let forged = format!("error no\nerror: Main cannot be reached\r\x1b[2J{UNSEEN}");
    let refused = main.weir(&["call", "puppet@1", "run", "--raw", &forged]);
    let expected = format!("error: refused: no\\nerror: Main cannot be reached\\r\\u{{1b}}[2J{SHOWN}\n");
    assert_eq!((refused.code, refused.stderr), (7, expected));
}

#[test]
fn what_cannot_be_seen_is_escaped_in_the_log_and_in_what_main_keeps() {
    let mut main = Running::with(PUPPET);
    main.weir(&["call", "puppet@1", "run", "--raw", &format!("log {UNSEEN}")]).good();
    main.until(SHOWN);
    assert!(main.weir(&["logs", "puppet"]).good().contains(SHOWN));
    assert!(main.weir(&["logs", "puppet", "--json"]).good().contains(&SHOWN.replace('\\', r"\\")));
}
