//! Start, stop, and background tasks.

#![expect(clippy::unused_async, reason = "handlers are async, whether they wait or not")]

use std::{
    cell::RefCell,
    future::{pending, ready},
    time::Duration,
};

use weir_sdk::{Context, Contract, Empty, Error, Extension, Operation, testing::Harness};

const STORAGE: Contract = Contract::new("storage@1");
const GET: Operation<Empty, String> = STORAGE.operation("get");
const PUT: Operation<String, Empty> = STORAGE.operation("put");

const NOTES: Contract = Contract::new("notes@1");
const READ: Operation<Empty, String> = NOTES.operation("read");
const WAIT: Operation<u64, Empty> = NOTES.operation("wait");
const FETCH: Operation<Empty, String> = NOTES.operation("fetch");
/// Waits for a second first.
const FETCH_LATE: Operation<Empty, String> = NOTES.operation("fetch-late");

weir_sdk::manifest! { id: "notes", fulfills: &[NOTES], requires: &[STORAGE], publishes: &["notes.>"] }

#[derive(Default)]
struct Notes {
    text: RefCell<String>,
}

impl Notes {
    async fn load(&self, ctx: &Context) -> Result<(), Error> {
        *self.text.borrow_mut() = ctx.call(GET, &Empty {}).await?;
        ctx.publish("notes.loaded", &ctx.own_name())?;
        Ok(())
    }

    async fn save(&self, ctx: &Context) -> Result<(), Error> {
        let text = self.text.borrow().clone();
        ctx.publish("notes.saved", &text)?;
        ctx.call(PUT, &text).await?;
        Ok(())
    }

    async fn read(&self, _: &Context, _: Empty) -> Result<String, Error> {
        Ok(self.text.borrow().clone())
    }

    async fn wait(&self, ctx: &Context, ms: u64) -> Result<Empty, Error> {
        ctx.sleep(Duration::from_millis(ms)).await;
        ctx.publish("notes.waited", &ms)?;
        Ok(Empty {})
    }
}

fn extension() -> Extension<Notes> {
    Extension::new(MANIFEST, Notes::default())
        .on(READ, Notes::read)
        .on(WAIT, Notes::wait)
        .on(FETCH, async |_: &Notes, ctx: &Context, _| ctx.call(GET, &Empty {}).await)
        .on(FETCH_LATE, async |_: &Notes, ctx: &Context, _| {
            ctx.sleep(Duration::from_secs(1)).await;
            ctx.call(GET, &Empty {}).await
        })
}

fn topics(main: &Harness) -> Vec<String> {
    main.published().into_iter().map(|event| event.topic).collect()
}

#[test]
fn what_on_start_loads_is_there_for_the_first_request() {
    let main = Harness::new(extension().on_start(Notes::load));
    let clock = main.clock();
    main.fake(GET, async move |_| {
        clock.sleep(Duration::from_secs(1)).await;
        Ok("milk".to_owned())
    });
    assert_eq!(main.call(READ, &Empty {}), Ok("milk".to_owned()));
    assert_eq!(main.published()[0].json::<String>(), "notes");
}

#[test]
fn an_extension_whose_on_start_fails_ends_with_that_error() {
    let main = Harness::new(extension().on_start(Notes::load));
    main.fake(GET, |_| ready(Err(Error::handler("torn", "no"))));
    assert_eq!(main.start(), Err(Error::handler("torn", "no")));
    assert_eq!(main.call(READ, &Empty {}), Err(Error::handler("torn", "no")));
}

#[test]
fn stop_answers_what_is_in_hand_before_on_stop_runs() {
    let main = Harness::new(extension().on_stop(Notes::save));
    main.fake(PUT, async |_| Ok(Empty {}));
    let request = main.send(WAIT, &100, None).unwrap();
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(topics(&main), ["notes.waited", "notes.saved"]);
    assert_eq!(request.wait(), Ok(Empty {}));
}

#[test]
fn a_stopped_extension_has_no_more_answers() {
    let main = Harness::new(extension());
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.call(READ, &Empty {}), Err(Error::NoProvider("notes".to_owned())));
}

#[test]
fn stop_waits_for_no_handler_beyond_its_deadline() {
    let main = Harness::new(extension());
    let request = main.send(WAIT, &3_600_000, None).unwrap();
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.clock().now(), Duration::from_secs(5));
    assert_eq!(request.wait(), Err(Error::PeerGone));
}

#[test]
fn a_call_under_way_when_stop_comes_is_still_answered() {
    let main = Harness::new(extension());
    let clock = main.clock();
    main.fake(GET, async move |_| {
        clock.sleep(Duration::from_secs(1)).await;
        Ok("milk".to_owned())
    });
    let both = [main.send(FETCH, &Empty {}, None).unwrap(), main.send(FETCH_LATE, &Empty {}, None).unwrap()];
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.clock().now(), Duration::from_secs(2));
    for request in both {
        assert_eq!(request.wait(), Ok("milk".to_owned()));
    }
}

#[test]
fn a_background_task_runs_beside_the_handlers_until_stop() {
    let main = Harness::new(extension().background(async |_: &Notes, ctx: &Context| {
        loop {
            ctx.sleep(Duration::from_secs(60)).await;
            ctx.publish("notes.tick", &())?;
        }
    }));
    assert_eq!(main.call(READ, &Empty {}), Ok(String::new()));
    main.advance(Duration::from_secs(150));
    assert_eq!(main.call(READ, &Empty {}), Ok(String::new()));
    assert_eq!(topics(&main), ["notes.tick", "notes.tick"]);
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.clock().now(), Duration::from_secs(150));
}

#[test]
fn a_background_task_that_is_done_leaves_the_rest_alone() {
    let main = Harness::new(extension().background(async |_: &Notes, _: &Context| Ok(())));
    assert_eq!(main.call(READ, &Empty {}), Ok(String::new()));
}

#[test]
fn an_extension_whose_background_task_fails_ends_with_that_error() {
    let main = Harness::new(extension().background(async |_: &Notes, ctx: &Context| {
        ctx.sleep(Duration::from_secs(1)).await;
        Err(Error::failed("the socket is gone"))
    }));
    main.fake(GET, |_| pending());
    let waits = main.send(WAIT, &2_000, None).unwrap();
    let calls = main.send(FETCH, &Empty {}, None).unwrap();
    assert_eq!(calls.wait().unwrap_err().code(), "peer-gone", "nothing is received any more");
    assert_eq!(main.clock().now(), Duration::from_secs(1));
    assert_eq!(waits.wait(), Ok(Empty {}), "what is in hand is finished all the same");
    assert_eq!(main.stop(), Err(Error::failed("the socket is gone")));
}

#[test]
fn an_interrupted_extension_is_not_called_until_it_is_ready_again() {
    const PAUSE: Operation<u64, Empty> = NOTES.operation("pause");
    let main = Harness::new(extension().on(PAUSE, async |_: &Notes, ctx: &Context, ms| {
        ctx.interrupted("moving");
        ctx.sleep(Duration::from_millis(ms)).await;
        ctx.ready();
        Ok(Empty {})
    }));
    let pause = main.send(PAUSE, &10, None).unwrap();
    assert_eq!(main.call(READ, &Empty {}), Err(Error::NotReady("moving".to_owned())));
    assert_eq!(pause.wait(), Ok(Empty {}));
    assert_eq!(main.call(READ, &Empty {}), Ok(String::new()));
}

#[test]
fn configuration_is_there_from_the_start() {
    let main = Harness::new(extension().on_start(async |notes: &Notes, ctx: &Context| {
        *notes.text.borrow_mut() = ctx.config("text")?.unwrap_or_default();
        assert_eq!(ctx.config("other")?, None);
        assert_eq!(ctx.sender(), None);
        assert_eq!(ctx.remaining(), None);
        Ok(())
    }));
    main.config("text", "bread");
    assert_eq!(main.call(READ, &Empty {}), Ok("bread".to_owned()));
}
