//! Tasks that handlers spawn.

use std::{
    cell::{Cell, RefCell},
    future::pending,
    rc::Rc,
    time::Duration,
};

use weir_sdk::{Context, Contract, Empty, Error, Extension, Operation, Task, testing::Harness};

/// Answers 7 after a second.
const ASK: Operation<Empty, u64> = Contract::new("slow@1").operation("ask");
/// What it does is up to the test.
const RUN: Operation<Empty, u64> = Contract::new("tasks@1").operation("run");

weir_sdk::manifest! {
    id: "tasks",
    fulfills: &[RUN.contract()],
    requires: &[ASK.contract()],
    publishes: &["task.>"],
}

type Held = RefCell<Option<Task<()>>>;

fn extension(run: impl AsyncFn(&Held, &Context, Empty) -> Result<u64, Error> + 'static) -> Extension<Held> {
    Extension::new(MANIFEST, Held::default()).on(RUN, run)
}

fn harness(extension: Extension<Held>) -> Harness {
    let main = Harness::new(extension);
    let clock = main.clock();
    main.fake(ASK, async move |_| {
        clock.sleep(Duration::from_secs(1)).await;
        Ok(7)
    });
    main
}

/// Waits without end. Counts when it is dropped.
fn hang(ctx: &Context, dropped: &Rc<Cell<u64>>) -> Task<()> {
    struct Dropped(Rc<Cell<u64>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = Dropped(dropped.clone());
    ctx.spawn(async move {
        let _dropped = dropped;
        pending().await
    })
}

/// Publishes, after a second.
fn publish(ctx: &Context, topic: &'static str) -> Task<()> {
    let own = ctx.clone();
    ctx.spawn(async move {
        own.sleep(Duration::from_secs(1)).await;
        assert!(own.publish(topic, &()).is_ok());
    })
}

fn topics(main: &Harness) -> Vec<String> {
    main.published().into_iter().map(|event| event.topic).collect()
}

#[test]
fn tasks_run_while_their_handler_waits_and_each_gives_its_own_result() {
    let main = harness(extension(async |_, ctx, _| {
        let tasks: Vec<_> = (0..1000)
            .map(|number| {
                let own = ctx.clone();
                let waits = async move { own.sleep(Duration::from_millis(1000 - number)).await };
                (ctx.spawn(async move { number }), ctx.spawn(waits))
            })
            .collect();
        let answer = ctx.call(ASK, &Empty {}).await;
        for (number, (ready, waiting)) in (0..).zip(tasks) {
            assert_eq!((ready.await, waiting.await), (number, ()));
        }
        answer
    }));
    assert_eq!(main.call(RUN, &Empty {}), Ok(7));
    assert_eq!(main.clock().now(), Duration::from_secs(1));
}

#[test]
fn a_task_that_is_dropped_ends_where_it_waits() {
    let main = harness(extension(async |_, ctx, _| {
        let dropped = Rc::default();
        let waits = hang(ctx, &dropped);
        drop(hang(ctx, &dropped));
        assert_eq!(dropped.get(), 1, "before it has run");
        ctx.call(ASK, &Empty {}).await?;
        drop(waits);
        Ok(dropped.get())
    }));
    assert_eq!(main.call(RUN, &Empty {}), Ok(2));
    assert_eq!(main.stop(), Ok(()));
}

#[test]
fn a_task_can_drop_itself() {
    let main = harness(extension(async |_, ctx, _| {
        let (held, dropped) = (Rc::new(Held::default()), Rc::default());
        let (own, waits) = (held.clone(), hang(ctx, &dropped));
        held.replace(Some(ctx.spawn(async move {
            drop(own.take());
            waits.await;
        })));
        ctx.call(ASK, &Empty {}).await?;
        Ok(dropped.get())
    }));
    assert_eq!(main.call(RUN, &Empty {}), Ok(1));
}

#[test]
fn a_detached_task_outlives_its_request_and_then_calls_for_the_extension_itself() {
    let main = harness(extension(async |_, ctx, _| {
        publish(ctx, "task.early").detach();
        let own = ctx.clone();
        let late = async move {
            own.sleep(Duration::from_secs(60)).await;
            assert_eq!((own.remaining(), own.sender()), (None, Some("test".to_owned())));
            let answer = own.call(ASK, &Empty {}).await.unwrap();
            own.publish("task.late", &answer).unwrap();
        };
        ctx.spawn(late).detach();
        Ok(0)
    }));
    let request = main.send(RUN, &Empty {}, None).unwrap();
    assert!(request.is_answered());
    main.advance(Duration::from_secs(61));
    assert_eq!(topics(&main), ["task.early", "task.late"]);
    assert_eq!(request.wait(), Ok(0));
}

#[test]
fn on_stop_tasks_go_on_as_long_as_handlers_do() {
    let main = harness(extension(async |_, ctx, _| {
        publish(ctx, "task.detached").detach();
        ctx.spawn(pending::<()>()).detach();
        publish(ctx, "task.awaited").await;
        Ok(1)
    }));
    let request = main.send(RUN, &Empty {}, None).unwrap();
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.clock().now(), Duration::from_secs(1));
    assert_eq!(topics(&main), ["task.detached", "task.awaited"]);
    assert_eq!(request.wait(), Ok(1));
}

#[test]
fn on_start_and_on_stop_can_wait_for_tasks() {
    let start = async |held: &Held, ctx: &Context| {
        publish(ctx, "task.started").await;
        held.replace(Some(publish(ctx, "task.held")));
        Ok(())
    };
    let stop = async |held: &Held, ctx: &Context| {
        held.take().unwrap().await;
        publish(ctx, "task.stopped").await;
        Ok(())
    };
    let main = harness(extension(async |_, _, _| Ok(0)).on_start(start).on_stop(stop));
    assert_eq!(main.start(), Ok(()));
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(topics(&main), ["task.started", "task.held", "task.stopped"]);
    assert_eq!(main.clock().now(), Duration::from_secs(3));
}

#[test]
fn tasks_without_end_hold_up_neither_messages_nor_each_other() {
    let main = harness(extension(async |_, ctx, _| {
        let answer = Rc::new(Cell::new(None));
        let (own, set) = (ctx.clone(), answer.clone());
        let _waits = ctx.spawn(async move { set.set(Some(own.call(ASK, &Empty {}).await)) });
        for _ in 0..1000 {
            if let Some(answer) = answer.take() {
                return answer;
            }
            ctx.spawn(async {}).await;
        }
        Err(Error::failed("nothing else runs"))
    }));
    main.fake(ASK, async |_| Ok(7));
    assert_eq!(main.call(RUN, &Empty {}), Ok(7));
}

#[test]
#[should_panic(expected = "the task is torn")]
fn a_panic_of_a_detached_task_is_not_hidden() {
    let main = harness(extension(async |_, ctx, _| {
        ctx.spawn(async { panic!("the task is torn") }).detach();
        Ok(0)
    }));
    drop(main.call(RUN, &Empty {}));
}
