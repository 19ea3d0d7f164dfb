//! Queues: jobs put, taken, done and given back.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use weir_sdk::{
    Context, Contract, Empty, Error, Extension, JobId, Operation, Queue,
    codec::Bytes,
    testing::{Harness, JobState},
};

/// Milliseconds that the work takes; 13 fails.
const WORK: Queue<u64> = Queue::new("work");
const RAW: Queue<Vec<u8>, Bytes> = Queue::bytes("raw");
const RESULTS: Queue<String> = Queue::new("results");

const WORKER: Contract = Contract::new("worker@1");
/// Takes one job and describes it. A number bounds the wait, in milliseconds.
const TAKE: Operation<Option<u64>, (u64, u32, Option<String>)> = WORKER.operation("take");
const PING: Operation<Empty, Empty> = WORKER.operation("ping");

weir_sdk::manifest! {
    id: "worker",
    fulfills: &[WORKER],
    puts: &[RESULTS.name()],
    takes: &[WORK.name(), RAW.name()],
}

#[derive(Default)]
struct Worker {
    in_hand: Cell<usize>,
    most: Cell<usize>,
    order: RefCell<Vec<u64>>,
}

impl Worker {
    async fn work(&self, ctx: &Context, ms: u64) -> Result<(), Error> {
        self.in_hand.set(self.in_hand.get() + 1);
        self.most.set(self.most.get().max(self.in_hand.get()));
        if ms > 0 {
            ctx.sleep(Duration::from_millis(ms)).await;
        }
        self.in_hand.set(self.in_hand.get() - 1);
        if ms == 13 {
            return Err(Error::failed("unlucky"));
        }
        self.order.borrow_mut().push(ms);
        ctx.put(RESULTS, &format!("{ms} of {}", ctx.sender().unwrap_or_default()))?;
        Ok(())
    }

    async fn take(&self, ctx: &Context, ms: Option<u64>) -> Result<(u64, u32, Option<String>), Error> {
        let job = match ms {
            Some(ms) => ctx.within(Duration::from_millis(ms)).take(WORK).await?,
            None => ctx.take(WORK).await?,
        };
        let said = (job.payload, job.deliveries, job.sender());
        job.done()?;
        Ok(said)
    }
}

fn extension() -> Extension<Worker> {
    Extension::new(MANIFEST, Worker::default())
        .on(TAKE, Worker::take)
        .on(PING, async |_: &Worker, _: &Context, _| Ok(Empty {}))
}

fn states(main: &Harness, jobs: &[JobId]) -> Vec<JobState> {
    jobs.iter().map(|job| main.job(*job)).collect()
}

const WAITING: JobState = JobState::Waiting { deliveries: 0 };
const IN_HAND: JobState = JobState::InHand { deliveries: 1 };

#[test]
fn a_job_whose_handler_returns_is_done_and_the_next_one_comes() {
    let main = Harness::new(extension().on_job(WORK, Worker::work));
    main.sender("camera");
    let jobs = [0, 5, 0].map(|ms| main.put(WORK, &ms));
    assert_eq!(states(&main, &jobs), [JobState::Done, IN_HAND, WAITING], "one at a time");
    assert_eq!(main.call(PING, &Empty {}), Ok(Empty {}), "others are served meanwhile");
    main.advance(Duration::from_millis(5));
    assert_eq!(states(&main, &jobs), [JobState::Done; 3]);
    assert_eq!(main.take_all(RESULTS), ["0 of camera", "5 of camera", "0 of camera"]);
    assert_eq!(main.take_all(RESULTS), [""; 0]);
}

#[test]
fn as_many_jobs_are_in_hand_at_once_as_the_handler_is_given() {
    let most = std::rc::Rc::new(Cell::new(0));
    let main = Harness::new(extension().on_jobs(WORK, 3, {
        let most = most.clone();
        async move |worker: &Worker, ctx: &Context, ms| {
            let outcome = worker.work(ctx, ms).await;
            most.set(worker.most.get());
            outcome
        }
    }));
    // Some handlers wait and some do not: several jobs come in one batch, and some are done before others are
    // looked at.
    for ms in [20, 0, 0, 10, 0, 30, 5, 5, 0, 0] {
        main.put(WORK, &ms);
    }
    main.advance(Duration::from_millis(100));
    assert_eq!(main.take_all(RESULTS).len(), 10);
    assert_eq!(most.get(), 3);
}

#[test]
fn no_job_that_comes_in_a_batch_is_given_back_for_want_of_hands() {
    let main = Harness::new(extension().on_jobs(WORK, 2, Worker::work).background(
        // Keeps the loop from receiving one by one.
        async |_: &Worker, _: &Context| std::future::pending().await,
    ));
    main.put(WORK, &50);
    let slow = main.put(WORK, &50);
    let waiting: Vec<JobId> = [0, 50, 0, 50, 50].map(|ms| main.put(WORK, &ms)).into();
    assert_eq!(main.job(slow), IN_HAND);
    main.advance(Duration::from_millis(50));
    assert_eq!(states(&main, &waiting), [JobState::Done, IN_HAND, JobState::Done, IN_HAND, WAITING]);
}

#[test]
fn a_job_whose_handler_fails_comes_again_until_it_is_a_dead_letter() {
    let main = Harness::new(extension().on_job(WORK, Worker::work));
    let job = main.put(WORK, &13);
    assert_eq!(main.job(job), IN_HAND);
    main.advance(Duration::from_millis(13));
    assert_eq!(main.job(job), JobState::InHand { deliveries: 2 });
    main.advance(Duration::from_millis(26));
    assert_eq!(main.job(job), JobState::Dead);
    let next = main.put(WORK, &0);
    assert_eq!(main.job(next), JobState::Done, "the handler goes on");
}

#[test]
fn a_job_that_does_not_decode_disturbs_nobody_and_ends_among_the_dead_letters() {
    let main = Harness::new(extension().on_job(WORK, Worker::work));
    let bad = main.put_bytes(WORK, b"\"two\"");
    let good = main.put(WORK, &0);
    assert_eq!(states(&main, &[bad, good]), [JobState::Dead, JobState::Done]);

    let main = Harness::new(extension());
    let take = main.send(TAKE, &None, None).unwrap();
    let bad = main.put_bytes(WORK, b"\"two\"");
    assert_eq!(main.job(bad), JobState::Dead);
    main.put(WORK, &7);
    assert_eq!(take.wait(), Ok((7, 1, Some("test".to_owned()))));
}

#[test]
fn whoever_takes_gets_one_job_each_in_the_order_in_which_they_asked() {
    let main = Harness::new(extension());
    let untouched = main.put(WORK, &1);
    assert_eq!(main.job(untouched), WAITING, "nobody has asked");
    let takes: Vec<_> = (0..3).map(|_| main.send(TAKE, &None, None).unwrap()).collect();
    for ms in [2, 3, 4] {
        main.put(WORK, &ms);
    }
    for (expected, take) in (1..).zip(takes) {
        assert_eq!(take.wait().unwrap().0, expected);
    }
    assert_eq!(main.take_all(WORK), [4]);
}

#[test]
fn whoever_takes_within_a_time_gives_up_when_it_is_over() {
    let main = Harness::new(extension());
    assert_eq!(main.call(TAKE, &Some(20)).unwrap_err().code(), "timeout");
    assert_eq!(main.clock().now(), Duration::from_millis(20));
    let job = main.put(WORK, &1);
    assert_eq!(main.job(job), WAITING, "it is not asked for any more");
    assert_eq!(main.call(TAKE, &Some(20)).unwrap().0, 1);
    assert_eq!(main.clock().now(), Duration::from_millis(20));
}

#[test]
fn a_job_that_comes_for_one_who_gave_up_goes_back() {
    let main = Harness::new(extension().background(async |_: &Worker, ctx: &Context| {
        let mut take = Box::pin(ctx.take(RAW));
        std::future::poll_fn(|cx| {
            assert!(take.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        // The future lives on, but is not polled for its job.
        ctx.sleep(Duration::from_secs(1)).await;
        drop(take);
        std::future::pending().await
    }));
    let job = main.put(RAW, &b"\0\xff".to_vec());
    assert_eq!(main.job(job), IN_HAND);
    main.advance(Duration::from_secs(1));
    assert_eq!(main.job(job), JobState::Waiting { deliveries: 1 });
    assert_eq!(main.take_all(RAW), [b"\0\xff"]);
}

#[test]
fn a_job_that_is_dropped_before_it_is_done_goes_back() {
    let main = Harness::new(extension().background(async |_: &Worker, ctx: &Context| {
        drop(ctx.take(WORK).await?);
        let job = ctx.take(WORK).await?;
        assert_eq!(job.deliveries, 2);
        job.done()
    }));
    let job = main.put(WORK, &1);
    assert_eq!(main.job(job), JobState::Done);
}

#[test]
fn told_to_stop_an_extension_finishes_what_it_has_in_hand_and_takes_no_more() {
    let main = Harness::new(extension().on_job(WORK, Worker::work).on_stop(
        async |worker: &Worker, ctx: &Context| {
            assert_eq!(*worker.order.borrow(), [5]);
            assert_eq!(ctx.take(WORK).await.unwrap_err().code(), "not-ready");
            Ok(())
        },
    ));
    let jobs = [5, 6].map(|ms| main.put(WORK, &ms));
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(states(&main, &jobs), [JobState::Done, WAITING]);
    assert_eq!(main.clock().now(), Duration::from_millis(5));
}

#[test]
fn whoever_waits_for_a_job_when_stop_comes_hears_that_none_will() {
    let main = Harness::new(extension());
    let take = main.send(TAKE, &None, None).unwrap();
    assert_eq!(main.stop(), Ok(()));
    assert_eq!(main.clock().now(), Duration::ZERO);
    let refused = take.wait().unwrap_err();
    let text =
        "not ready: jobs of `work` come from when `on_start` is over until the extension is told to stop";
    assert_eq!(refused, Error::handler("not-ready", text));
}

#[test]
fn what_an_extension_that_fails_has_in_hand_goes_back() {
    let main = Harness::new(extension().background(async |_: &Worker, ctx: &Context| {
        let _held = ctx.take(WORK).await?;
        Err(Error::failed("the socket is gone"))
    }));
    let job = main.put(WORK, &1);
    assert_eq!(main.job(job), JobState::Waiting { deliveries: 1 });
    assert_eq!(main.stop(), Err(Error::failed("the socket is gone")));
}

#[test]
fn queues_that_the_manifest_lacks_are_refused_with_the_key_that_grants_them() {
    const OTHER: Queue<u64> = Queue::new("other");
    const TRY: Operation<Empty, Vec<String>> = WORKER.operation("try");
    let main = Harness::new(extension().on(TRY, async |_: &Worker, ctx: &Context, _| {
        let refused = [
            ctx.put(OTHER, &1).unwrap_err(),
            ctx.put(WORK, &1).unwrap_err(),
            ctx.take(RESULTS).await.unwrap_err(),
        ];
        Ok(refused.map(|error| error.to_string()).into())
    }));
    assert_eq!(
        main.call(TRY, &Empty {}).unwrap(),
        [
            "permission denied: `worker` may not take jobs of `other`; `takes` would grant it",
            "permission denied: `worker` may not put jobs into `work`; `puts` would grant it",
            "permission denied: `worker` may not take jobs of `results`; `takes` would grant it",
        ]
    );
}

#[test]
fn a_job_that_is_too_large_is_refused() {
    const TRY: Operation<u64, Empty> = WORKER.operation("try");
    let main = Harness::new(extension().on(TRY, async |_: &Worker, ctx: &Context, bytes: u64| {
        ctx.put(RESULTS, &"x".repeat(usize::try_from(bytes).unwrap_or_default()))?;
        Ok(Empty {})
    }));
    main.message_size(16);
    assert_eq!(main.call(TRY, &14), Ok(Empty {}));
    assert_eq!(main.call(TRY, &15).unwrap_err().code(), "too-large");
}
