//! Events: order, losses, and patterns known only at run time.

#![expect(clippy::unused_async, reason = "handlers are async, whether they wait or not")]

use std::{cell::RefCell, time::Duration};

use weir_sdk::{
    Context, Contract, Empty, Error, Event, Extension, Operation, Topic, codec::Bytes, testing::Harness,
};

const RECORDER: Contract = Contract::new("recorder@1");
/// Records of topic, sequence, lost, payload and sender.
const TAKE: Operation<Empty, Vec<Record>> = RECORDER.operation("take");

type Record = (String, u64, u64, String, Option<String>);

weir_sdk::manifest! {
    id: "recorder",
    fulfills: &[RECORDER],
    publishes: &["loop.>"],
    subscribes: &["number.>", "exact.topic", "loop.>"],
}

#[derive(Default)]
struct Recorder(RefCell<Vec<Record>>);

impl Recorder {
    /// Earlier events take longer, so that the order shows.
    async fn slowly(&self, ctx: &Context, event: Event<u64>) -> Result<(), Error> {
        ctx.sleep(Duration::from_millis(event.payload)).await;
        self.record(ctx, event)
    }

    async fn at_once(&self, ctx: &Context, event: Event<String>) -> Result<(), Error> {
        self.record(ctx, event)
    }

    async fn bytes(&self, ctx: &Context, event: Event<Vec<u8>>) -> Result<(), Error> {
        let Event { topic, sequence, lost, retained, payload } = event;
        self.record(ctx, Event { topic, sequence, lost, retained, payload: payload.len() })
    }

    fn record<T: ToString>(&self, ctx: &Context, event: Event<T>) -> Result<(), Error> {
        let Event { topic, sequence, lost, payload, .. } = event;
        self.0.borrow_mut().push((topic, sequence, lost, payload.to_string(), ctx.sender()));
        Ok(())
    }

    async fn take(&self, _: &Context, _: Empty) -> Result<Vec<Record>, Error> {
        Ok(self.0.take())
    }
}

fn harness() -> Harness {
    Harness::new(
        Extension::new(MANIFEST, Recorder::default())
            .on(TAKE, Recorder::take)
            .on_event("number.>", Recorder::slowly)
            .on_event("exact.topic", Recorder::at_once)
            .on_any_event(Recorder::bytes)
            .on_start(async |_: &Recorder, ctx: &Context| {
                ctx.subscribe(&ctx.config("pattern")?.unwrap_or_default())
            }),
    )
}

fn started() -> Harness {
    let main = harness();
    main.config("pattern", "loop.*");
    assert_eq!(main.start(), Ok(()));
    main
}

fn numbers(records: Vec<Record>) -> Vec<(u64, u64, String)> {
    records.into_iter().map(|(_, sequence, lost, payload, _)| (sequence, lost, payload)).collect()
}

#[test]
fn events_reach_their_handler_one_after_the_other_in_the_order_in_which_they_came() {
    let main = started();
    for ms in [30, 10, 20] {
        assert_eq!(main.publish("number.ms", &ms), 1);
    }
    assert_eq!(main.call(TAKE, &Empty {}), Ok(vec![]), "nobody waits for a slow handler");
    main.advance(Duration::from_millis(60));
    let records = main.call(TAKE, &Empty {}).unwrap();
    assert_eq!(numbers(records), [(1, 0, "30".into()), (2, 0, "10".into()), (3, 0, "20".into())]);
}

#[test]
fn an_event_carries_its_topic_and_sender_and_what_was_lost() {
    let main = started();
    main.sender("settings");
    main.lose(2);
    main.publish("exact.topic", "hello");
    let record = ("exact.topic".to_owned(), 3, 2, "hello".to_owned(), Some("settings".to_owned()));
    assert_eq!(main.call(TAKE, &Empty {}), Ok(vec![record]));
}

#[test]
fn events_that_a_slow_handler_has_no_room_for_are_counted_as_lost() {
    let main = started();
    for _ in 0..=300 {
        main.publish("number.ms", &1);
    }
    main.advance(Duration::from_secs(1));
    let records = numbers(main.call(TAKE, &Empty {}).unwrap());
    assert_eq!(records.len(), 257, "one in hand and 256 that wait");
    assert_eq!(records[0], (1, 0, "1".into()));
    assert_eq!(records[1], (46, 44, "1".into()));
    assert_eq!(records[256], (301, 0, "1".into()));
}

#[test]
fn a_handler_that_does_not_wait_has_room_for_any_number_of_events() {
    let main = started();
    for number in 0..=300 {
        main.publish("exact.topic", &number.to_string());
    }
    let records = numbers(main.call(TAKE, &Empty {}).unwrap());
    assert_eq!(records.len(), 301);
    assert!(records.iter().all(|(_, lost, _)| *lost == 0));
}

#[test]
fn an_event_that_does_not_decode_disturbs_nobody() {
    let main = started();
    assert_eq!(main.publish_bytes("exact.topic", b"{"), 1);
    main.publish("exact.topic", "fine");
    assert_eq!(numbers(main.call(TAKE, &Empty {}).unwrap()), [(2, 0, "fine".into())]);
}

#[test]
fn patterns_known_only_at_run_time_reach_the_handler_for_any() {
    let main = started();
    assert_eq!(main.publish_bytes("loop.a", b"1234"), 1);
    assert_eq!(main.publish_bytes("loop.a.b", b""), 0, "granted, but not subscribed to");
    let records = main.call(TAKE, &Empty {}).unwrap();
    assert_eq!((&*records[0].0, &*records[0].3), ("loop.a", "4"));
}

#[test]
fn a_pattern_that_names_one_topic_gives_it_to_its_events() {
    let main = harness();
    main.config("pattern", "loop.one");
    main.publish_bytes("loop.one", b"");
    assert_eq!(main.call(TAKE, &Empty {}).unwrap()[0].0, "loop.one");
}

#[test]
fn an_ended_subscription_brings_no_event_and_can_begin_again() {
    let extension = Extension::new(MANIFEST, Recorder::default())
        .on(TAKE, Recorder::take)
        .on_any_event(Recorder::bytes)
        .on_event("exact.topic", async |_: &Recorder, ctx: &Context, event: Event<bool>| {
            if event.payload { ctx.subscribe("loop.*") } else { ctx.unsubscribe("loop.*") }
        })
        .on_event("number.>", async |_: &Recorder, ctx: &Context, _: Event<u64>| {
            assert!(matches!(ctx.unsubscribe("loop.*"), Err(Error::Invalid(_))));
            Ok(())
        });
    let main = Harness::new(extension);
    let mut reached = Vec::new();
    for subscribes in [true, false, true] {
        main.publish("exact.topic", &subscribes);
        reached.push(main.publish_bytes("loop.a", b""));
    }
    assert_eq!(reached, [1, 0, 1]);
    assert_eq!(main.call(TAKE, &Empty {}).unwrap().len(), 2);
    main.publish("exact.topic", &false);
    main.publish("number.ms", &0);
}

#[test]
fn a_pattern_outside_the_manifest_is_refused() {
    let main = harness();
    main.config("pattern", "other.>");
    let refused = "`recorder` may not subscribe to `other.>`; `subscribes` would grant it";
    assert_eq!(main.start(), Err(Error::PermissionDenied(refused.to_owned())));
}

#[test]
fn publisher_and_subscriber_agree_on_a_shared_topic() {
    const LEVELS: Topic<(u8, u8)> = Topic::new("level.*");
    const RAW: Topic<Vec<u8>, Bytes> = Topic::bytes("raw.in");
    weir_sdk::manifest! {
        id: "mixer",
        publishes: &[LEVELS.pattern(), "out.text"],
        subscribes: &[LEVELS.pattern(), RAW.pattern()],
    }

    let extension = Extension::new(MANIFEST, ())
        .on_event(LEVELS, async |(), ctx: &Context, event: Event<(u8, u8)>| {
            let Event { topic, payload: (left, right), .. } = event;
            ctx.publish("out.text", &format!("{topic}: {}", left + right)).map(drop)
        })
        .on_event(RAW, async |(), ctx: &Context, event: Event<Vec<u8>>| {
            let sum = event.payload.iter().sum();
            ctx.publish_to("other", LEVELS.at("sum"), &(sum, 0)).map(drop)
        });
    let main = Harness::new(extension);
    assert_eq!(main.publish(LEVELS.at("main"), &(1, 2)), 1);
    assert_eq!(main.publish(RAW, &vec![3, 4]), 1);
    let [text, targeted] = main.published().try_into().unwrap();
    assert_eq!(text.json::<String>(), "level.main: 3");
    assert_eq!((&*targeted.topic, targeted.to.as_deref()), ("level.sum", Some("other")));
    assert_eq!(targeted.json::<(u8, u8)>(), (7, 0));
}

#[test]
fn a_pattern_without_a_wildcard_is_one_topic() {
    const ONE: Topic<u8> = Topic::new("a.b");
    const REST: Topic<u8> = Topic::new("a.*.>");
    assert_eq!(ONE.at("x").to_string(), "a.b");
    assert_eq!(REST.at("x").to_string(), "a.x.>");
}

#[test]
fn what_is_retained_comes_first_and_says_so() {
    let seen = std::rc::Rc::new(RefCell::new(Vec::new()));
    let extension = Extension::new(MANIFEST, Recorder::default())
        .on(TAKE, Recorder::take)
        .on_any_event(Recorder::bytes)
        .on_event("exact.topic", {
            let seen = seen.clone();
            async move |_: &Recorder, _: &Context, event: Event<String>| {
                seen.borrow_mut().push((event.sequence, event.retained, event.payload));
                Ok(())
            }
        });
    let main = Harness::new(extension);
    main.retain("exact.topic", "last");
    main.retain("other.topic", "of nobody");
    main.publish("exact.topic", "next");
    assert_eq!(seen.take(), [(1, true, "last".to_owned()), (2, false, "next".to_owned())]);
}

#[test]
fn sequence_numbers_count_the_events_of_each_topic_and_not_those_for_one_extension() {
    const SEND: Operation<Empty, Empty> = RECORDER.operation("send");
    let extension = Extension::new(MANIFEST, Recorder::default())
        .on(TAKE, Recorder::take)
        .on(SEND, async |_: &Recorder, ctx: &Context, _| {
            ctx.publish_to(&ctx.own_name(), "loop.a", &())?;
            Ok(Empty {})
        })
        .on_event("number.>", Recorder::slowly)
        .on_event("exact.topic", Recorder::at_once)
        .on_event_bytes("loop.>", Recorder::bytes);
    let main = Harness::new(extension);
    for topic in ["loop.a", "loop.b", "loop.a"] {
        main.publish(topic, &());
    }
    main.call(SEND, &Empty {}).unwrap();
    let records = main.call(TAKE, &Empty {}).unwrap();
    let places: Vec<_> = records.iter().map(|(topic, sequence, ..)| (&**topic, *sequence)).collect();
    assert_eq!(places, [("loop.a", 1), ("loop.b", 1), ("loop.a", 2), ("loop.a", 0)]);
}
