//! Extensions' text in the operator's output.

use super::support::{PUPPET, Running};

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
