//! Queues, topics, subscriptions and instances: defaults, memory and dead letters.

use weir_names::{Policy, QueuePolicy, TopicPattern};

use super::*;
use crate::{ExtensionConfig, QueueConfig, SubscribeGrant, TopicConfig};

fn extension(entries: &str) -> ExtensionConfig {
    let text = format!("[[extension]]\nid = 'a'\npath = 'a.wasm'\n{entries}");
    parse(&text).unwrap().extensions.remove(0)
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = parse("[queue.a]\n[topic.'a.b']").unwrap();
    let written = "messages = 1000\nbytes = '1 MiB'\nwhen-full = 'reject'\nmax-deliveries = 3\n[topic.'a.b']\nretain = false";
    assert_eq!(config, parse(&format!("[queue.a]\n{written}")).unwrap());
    assert_eq!(config.queues, [("a".parse().unwrap(), QueueConfig::default())].into());
    assert_eq!(config.topics, [("a.b".parse().unwrap(), TopicConfig::default())].into());
    assert_eq!(extension("when-full = 'reject'\ninstances = 1"), extension(""));
}

#[test]
fn a_subscription_is_a_pattern_or_a_table_and_their_order_stays() {
    let subscribes = "subscribes = ['a.b', { topic = 'a.*' }, { topic = 'a.>', policy = 'drop-oldest' }, \
                      { topic = '>', policy = 'latest', messages = 7, bytes = '7 KiB' }]";
    let [a, b, c] =
        ["a.b", "a.*", "a.>"].map(|text| SubscribeGrant::from(text.parse::<TopicPattern>().unwrap()));
    let all: TopicPattern = ">".parse().unwrap();
    let d = SubscribeGrant { policy: Policy::Latest, messages: Some(7), bytes: Some(7 << 10), ..all.into() };
    let read = extension(subscribes).subscribes;
    assert_eq!(read, [a, b, c, d]);
    let headers = "[[extension.subscribes]]\ntopic = 'a.b'\n[[extension.subscribes]]\ntopic = 'a.*'";
    assert_eq!(extension(headers).subscribes, read[..2]);
}

#[test]
fn every_policy_is_read_where_it_can_be() {
    for policy in Policy::ALL {
        let grant = format!("subscribes = [{{ topic = 't', policy = '{policy}' }}]");
        assert_eq!(extension(&grant).subscribes[0].policy, policy);

        let queue = parse(&format!("[queue.a]\nwhen-full = '{policy}'")).map(|it| it.queues["a"].when_full);
        assert_eq!(queue.ok().map(Policy::from), Some(policy).filter(|it| *it != Policy::Latest));

        let text = format!("[[extension]]\nid = 'a'\npath = 'a.wasm'\nwhen-full = '{policy}'");
        let requests = parse(&text).map(|it| it.extensions[0].when_full);
        let keeps = matches!(policy, Policy::Block | Policy::Reject);
        assert_eq!(requests.ok().map(Policy::from), Some(policy).filter(|_| keeps));
    }
}

#[test]
fn a_subscription_can_have_just_what_the_inbox_has() {
    let grant = "subscribes = [{ topic = 't', messages = 5, bytes = '2 MiB' }]";
    let limits = "limits.inbox = { messages = 5, bytes = '2 MiB' }";
    assert_eq!(extension(&format!("{grant}\n{limits}")).subscribes[0].messages, Some(5));
}

#[test]
fn dead_letters_that_are_not_configured_get_the_larger_bounds_of_their_queues() {
    let config = parse(
        "[queue.a]\nmessages = 5\nbytes = '2 MiB'\nwhen-full = 'block'\nmax-deliveries = 9\ndead-letter = 'dead'\n\
         [queue.b]\nmessages = 70\nbytes = '4 KiB'\ndead-letter = 'dead'\n\
         [queue.c]\ndead-letter = 'own'\n\
         [queue.own]\nmessages = 1\n\
         [[extension]]\nid = 'a'\npath = 'a.wasm'\nputs = ['dead']\ntakes = ['dead', 'own']",
    )
    .unwrap();
    let all = config.all_queues();
    let names: Vec<_> = all.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "dead", "own"]);
    let dead = QueueConfig {
        messages: 70,
        bytes: 2 << 20,
        when_full: QueuePolicy::DropOldest,
        ..QueueConfig::default()
    };
    assert_eq!(all["dead"], dead);
    assert!(config.queues.iter().all(|(name, queue)| all[name] == *queue));
}

#[test]
fn every_instance_and_every_queue_counts_against_the_budget() {
    // Halves of a mebibyte.
    let halves = |entries: &str| extension(entries).memory_sum() >> 19;
    assert_eq!(halves(""), 39);
    assert_eq!(halves("instances = 3"), 3 * 39);
    assert_eq!(halves("instances = 3\nreload = 'overlap'"), 3 * 74);

    let text = "
        main.memory-budget = '62976 KiB'
        [queue.a]
        dead-letter = 'dead'
        [queue.b]
        bytes = '1 MiB'
        [[extension]]
        id = 'a'
        path = 'a.wasm'
        instances = 3
    ";
    parse(text).unwrap();
    parse(&text.replace("'62976 KiB'", "64487423")).unwrap_err();
}

#[test]
fn a_queue_into_which_more_can_be_put_than_anybody_takes_is_warned_of() {
    let with = |put: &str, taken: &str| {
        let text = format!(
            "queue.q.bytes = \"8 MiB\"\n\
             [[extension]]\nid = \"a\"\npath = \"a.wasm\"\nputs = [\"q\"]\nlimits.message-size = \"{put}\"\n\
             [[extension]]\nid = \"b\"\npath = \"b.wasm\"\ntakes = [\"q\"]\nlimits.message-size = \"{taken}\"\n"
        );
        parse(&text).unwrap().warnings()
    };
    assert_eq!(with("256 KiB", "256 KiB"), [""; 0]);
    let warning = "`a` can put larger jobs into `q` than the `message-size` of any reader: those are refused";
    assert_eq!(with("512 KiB", "256 KiB"), [warning]);
}
