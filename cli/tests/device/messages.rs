//! Calls, events and jobs.

use super::support::{Device, puppet, until};

#[test]
fn calls_reach_extensions_and_go_from_one_to_another() {
    let device = Device::with(&(puppet("a", "wants = [\"b@1\"]") + &puppet("b", "")));
    assert_eq!(device.tell("a", "call b@1 run echo through both"), "through both");
    assert_eq!(device.tell("a", "call b@1 run asker"), "a");
    let large = device.tell("b", "large 60000");
    assert!(large.len() == 60_000 && large.bytes().all(|byte| byte == b'x'), "{} bytes", large.len());
    let refused = device.ask("a", "error by hand");
    assert!(refused.code == 7 && refused.stderr.contains("by hand"), "{refused:?}");
    let unknown = device.ask("nobody", "echo");
    assert_eq!(unknown.code, 4, "{unknown:?}");
}

#[test]
fn events_reach_every_subscriber_in_their_order() {
    let subscriber = "subscribes = [\"told.>\"]\nconfig.start = \"subscribe told.>\"";
    let device = Device::with(
        &(puppet("a", subscriber) + &puppet("b", subscriber) + &puppet("c", "publishes = [\"told.*\"]")),
    );
    device.weir(&["publish", "told.once", "from outside"]).good();
    device.tell("c", "all publish told.twice from c; publish told.twice again");
    for id in ["a", "b"] {
        let heard = device.tell(id, "heard");
        let lines: Vec<_> = heard.lines().map(|line| line.rsplit_once(" 0 ").unwrap_or_default().1).collect();
        assert_eq!(lines, ["from outside", "from c", "again"], "{heard}");
    }
}

#[test]
fn a_job_goes_to_one_reader_and_again_if_that_one_dies() {
    let queue = "[queue.jobs]\nmessages = 8\nmax-deliveries = 2\ndead-letter = \"dead\"\n";
    let reader = "takes = [\"jobs\"]\nrestart = { backoff = \"1ms\", max-backoff = \"1ms\", failures = 9 }";
    let device = Device::with(
        &(queue.to_owned()
            + &puppet("writer", "puts = [\"jobs\"]")
            + &puppet("reader", &format!("{reader}\nconfig.start = \"take jobs one-by-one\""))),
    );
    device.tell("writer", "put jobs well done");
    let mut seen = String::new();
    until("the job", || {
        seen = device.tell("reader", "heard");
        !seen.is_empty()
    });
    assert!(seen.starts_with("job: ") && seen.ends_with(" 1 well done"), "{seen}");
    // It traps at each of two deliveries.
    device.tell("writer", "put jobs trap");
    let dead = || device.json(&["queues", "show", "--json", "dead"]).to_string();
    until("the dead letter", || dead().contains("\"trap\""));
    device.until_state("reader", "ready");
    let failure = device.failure("reader").to_string();
    assert!(failure.contains("trapped"), "{failure}");
}
