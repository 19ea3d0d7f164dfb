//! Queues whose jobs a provider keeps: what a put waits for, and what the provider hears of the jobs that it offers.

use weir_names::QueuePolicy;

use super::*;
use crate::queue::JobCounts;

const SETTINGS: QueueSettings = QueueSettings {
    messages: 4,
    bytes: 10_000,
    when_full: QueuePolicy::Reject,
    max_deliveries: 2,
    max_payload: u64::MAX,
    store: None,
};

struct World {
    bus: TestBus,
    queue: Arc<SharedQueue>,
    dead: Arc<SharedQueue>,
    name: Arc<Peer>,
    /// A program that may only put.
    putter: Arc<Peer>,
}

impl World {
    fn new(when_full: QueuePolicy) -> Self {
        let bus = TestBus::new();
        let stored = QueueSettings { store: Some("store@1".parse().unwrap()), when_full, ..SETTINGS };
        let (queue, dead) = with_dead_letters(&bus, stored, SETTINGS);
        let access = || Access { puts: vec!["q".parse().unwrap()], ..any_topic(&[], &[]) };
        let keeper = Access { fulfills: vec!["store@1".parse().unwrap()], ..access() };
        let name = |name: &str, access| bus.add_name(&name.parse().unwrap(), access).unwrap();
        let putter = bus.arrive(&name("app:putter", access()), LIMITS);
        let name = name("sidecar:keeper", keeper);
        Self { bus, queue, dead, name, putter }
    }

    fn keeper(&self) -> Arc<Peer> {
        let session = self.bus.arrive(&self.name, LIMITS);
        self.bus.bus.serve(&session, "store@1", &["q".to_owned()]).unwrap();
        session
    }

    fn put(&self, payload: &'static str) -> Result<Putting, Error> {
        self.bus.bus.put(&self.putter, &self.queue, payload.into(), (None, Parent::default()))
    }

    fn offer(&self, keeper: &Arc<Peer>, payload: &'static str) -> Offering {
        self.bus.bus.offer(keeper, &self.queue, payload.into(), Parent::default()).unwrap()
    }

    fn take(&self) -> TakenJob {
        self.queue.take(&JobReader::new("reader".into(), u64::MAX, None, || {})).expect("a job waits")
    }

    /// Nothing waits, is in hand, or counts in the bytes.
    #[track_caller]
    fn assert_empty(&self) {
        let stats = self.queue.status();
        assert_eq!((stats.waiting, stats.in_hand, stats.bytes, stats.blocked), (0, 0, 0, 0));
    }
}

fn dead() -> Result<(), Error> {
    Err(Error::handler("dead", "it was delivered too often, and is a dead letter"))
}

#[tokio::test(start_paused = true)]
async fn a_put_is_a_request_to_the_provider_and_returns_once_that_has_answered() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let mut putting = Box::pin(world.put("job").unwrap().put());
    assert!((&mut putting).now_or_never().is_none());
    let Request { payload, responder, .. } = take_request(&keeper);
    let operation = responder.operation();
    assert_eq!((operation.contract.as_str(), operation.name.as_str()), ("store@1", "q"));
    assert_eq!((&payload[..], responder.sender()), (&b"job"[..], world.putter.sender()));
    world.assert_empty();
    responder.give(ok(""));
    putting.await.unwrap();
    // Only the provider gives it to the readers.
    world.assert_empty();
    assert_eq!(world.queue.counts(), JobCounts::default());
}

#[tokio::test(start_paused = true)]
async fn a_put_hears_why_the_provider_does_not_keep_the_job() {
    let world = World::new(QueuePolicy::Reject);
    let nobody = Error::NoProvider("`sidecar:keeper` is not connected".to_owned());
    assert_eq!(world.put("").map(drop), Err(nobody.clone()));

    let keeper = world.keeper();
    let full = Err(Error::handler("full", "no space left"));
    let refused = world.put("").unwrap();
    take_request(&keeper).responder.give(full.clone());
    assert_eq!(refused.put().await.map(drop), full.map(drop));

    let started = Instant::now();
    let times = (Some(Duration::from_millis(20)), Parent::default());
    let late = world.bus.bus.put(&world.putter, &world.queue, "".into(), times).unwrap();
    assert_eq!(late.put().await, Err(Error::Timeout));
    assert_eq!(started.elapsed(), Duration::from_millis(20));

    let waiting = world.put("").unwrap();
    world.bus.leave(&keeper);
    assert_eq!(waiting.put().now_or_never(), Some(Err(Error::PeerGone)));
    assert_eq!(world.put("").map(drop), Err(nobody));
    let too_large =
        world.bus.bus.put(&world.putter, &world.queue, vec![0; 2000].into(), (None, Parent::default()));
    assert!(matches!(too_large, Err(Error::TooLarge { .. })));
    let other = world.bus.arrive(&world.bus.name("app:other", &[], &[]), LIMITS);
    let denied = world.bus.bus.put(&other, &world.queue, Bytes::new(), (None, Parent::default()));
    assert!(matches!(denied, Err(Error::PermissionDenied(_))));
}

#[tokio::test(start_paused = true)]
async fn a_put_that_is_dropped_is_waited_for_no_more() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let (first, second) = (world.put("1").unwrap(), world.put("2").unwrap());
    let request = take_request(&keeper);
    drop((first, second));
    assert!(request.responder.is_done());
    assert!(!request.responder.give(ok("")));
    assert!(matches!(keeper.take(), Taken::Empty));
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_puts_stands_still_until_the_provider_answers() {
    let world = World::new(QueuePolicy::Reject);
    let extension = world.bus.ready("a", &["a@1"], &[]);
    let access = Access { puts: vec!["q".parse().unwrap()], ..any_topic(&["a@1"], &["a@1"]) };
    let extension = extension.renewed(LIMITS, access);
    world.bus.replace(&extension, true);
    start(&extension, &["a@1"]);
    let keeper = world.keeper();
    let put = || world.bus.bus.put(&extension, &world.queue, Bytes::new(), (None, Parent::default()));
    let putting = put().unwrap();
    assert!(!extension.waits().is_empty());
    take_request(&keeper).responder.give(ok(""));
    putting.put().await.unwrap();
    assert!(extension.waits().is_empty());
    assert_eq!(put().unwrap().put().await, Err(Error::Timeout));
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_offers_goes_to_the_readers_and_it_hears_when_one_is_done() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let mut done = Box::pin(world.offer(&keeper, "job").done());
    let job = world.take();
    let offered = job.get();
    assert_eq!((&offered.payload[..], offered.sender), (&b"job"[..], world.name.id()));
    assert!(matches!(keeper.take(), Taken::Empty), "its own job is no request to it");
    assert!((&mut done).now_or_never().is_none());
    job.done();
    assert_eq!(done.now_or_never(), Some(Ok(())));
    world.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_offered_job_that_comes_back_is_delivered_again_and_its_death_is_told() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let mut done = Box::pin(world.offer(&keeper, "poison").done());
    for delivery in 1..=SETTINGS.max_deliveries {
        assert!((&mut done).now_or_never().is_none());
        let job = world.take();
        assert_eq!(job.get().deliveries, delivery);
    }
    assert_eq!(done.now_or_never(), Some(dead()));
    world.assert_empty();

    // Put back, it is a job of the queue alone.
    assert_eq!(world.bus.requeue(&world.dead, None), Ok(1));
    assert_eq!(world.dead.status().bytes, 0);
    world.take().done();
    world.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_offered_job_that_is_shed_or_whose_queue_closes_is_told_to_be_lost() {
    let world = World::new(QueuePolicy::DropOldest);
    let keeper = world.keeper();
    let first = world.offer(&keeper, "1");
    let others: Vec<_> = (0..SETTINGS.messages).map(|_| world.offer(&keeper, "other")).collect();
    assert_eq!(first.done().now_or_never(), Some(Err(Error::Overloaded("q".to_owned()))));
    let in_hand = world.take();
    world.bus.configure_queues(Vec::new());
    let mut others = others.into_iter();
    let mut held = Box::pin(others.next().unwrap().done());
    for other in others {
        assert!(matches!(other.done().now_or_never(), Some(Err(Error::NoProvider(_)))));
    }
    // A job in hand may still be done. One that comes back is put again by its provider.
    assert!((&mut held).now_or_never().is_none());
    drop(in_hand);
    assert!(matches!(held.now_or_never(), Some(Err(Error::NoProvider(_)))));
    world.assert_empty();
    assert_eq!(world.dead.counts().put, 0);
    let closed = world.bus.bus.offer(&keeper, &world.queue, Bytes::new(), Parent::default()).map(drop);
    assert!(matches!(closed, Err(Error::NoProvider(_))));
}

#[tokio::test(start_paused = true)]
async fn a_job_in_hand_may_be_done_after_its_queue_has_closed() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let offering = world.offer(&keeper, "");
    let in_hand = world.take();
    world.bus.configure_queues(Vec::new());
    in_hand.done();
    assert_eq!(offering.done().now_or_never(), Some(Ok(())));
    world.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_is_dropped_takes_back_a_waiting_job_and_one_in_hand_when_it_comes_back() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    drop(world.offer(&keeper, "waits"));
    world.assert_empty();

    let (comes_back, is_done) = (world.offer(&keeper, "comes back"), world.offer(&keeper, "is done"));
    let in_hand = [world.take(), world.take()];
    drop((comes_back, is_done));
    assert_eq!(world.queue.status().in_hand, 2);
    let [comes_back, is_done] = in_hand;
    drop(comes_back);
    is_done.done();
    world.assert_empty();
    assert_eq!((world.dead.counts().put, world.queue.counts().dead), (0, 0));

    // Handed to a reader that has not taken it, it comes back when the reader leaves.
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    world.queue.enlist(&reader);
    drop(world.offer(&keeper, "handed"));
    assert!(reader.has_job());
    world.queue.leave(&reader);
    world.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_offer_waits_for_room_and_gives_it_to_the_next_when_it_is_dropped() {
    let world = World::new(QueuePolicy::Block);
    let keeper = world.keeper();
    let first: Vec<_> = (0..SETTINGS.messages).map(|_| world.offer(&keeper, "1")).collect();
    let [second, third, fourth] = ["2", "3", "4"].map(|payload| world.offer(&keeper, payload));
    assert_eq!(world.queue.status().blocked, 3);
    drop(second);
    let mut first = first.into_iter();
    drop(first.next());
    assert_eq!((world.queue.status().blocked, world.queue.status().waiting), (1, 4));
    let mut fourth = Box::pin(fourth.done());
    assert!((&mut fourth).now_or_never().is_none());
    // No deadline ends its wait for room.
    tokio::time::advance(Duration::from_secs(3600)).await;
    tokio::task::yield_now().await;
    assert!((&mut fourth).now_or_never().is_none());
    drop(first);
    let jobs = [world.take(), world.take()];
    assert_eq!(jobs.each_ref().map(|job| job.get().payload.clone()), ["3", "4"]);
    jobs.into_iter().for_each(TakenJob::done);
    assert_eq!((third.done().now_or_never(), fourth.now_or_never()), (Some(Ok(())), Some(Ok(()))));
    world.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn only_the_provider_can_wait_until_a_job_of_its_queue_is_done() {
    let world = World::new(QueuePolicy::Reject);
    let keeper = world.keeper();
    let offered = world.bus.bus.offer(&world.putter, &world.queue, "job".into(), Parent::default()).map(drop);
    let text =
        "the jobs of queue `q` are kept by the provider of `store@1`: only that can wait until one is done";
    assert_eq!(offered, Err(Error::Invalid(text.to_owned())));
    assert!(matches!(keeper.take(), Taken::Empty));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_serves_the_store_no_more_offers_nothing() {
    let world = World::new(QueuePolicy::Reject);
    let former = world.keeper();
    world.bus.leave(&former);
    let keeper = world.keeper();
    let offer = world.bus.bus.offer(&former, &world.queue, "twice".into(), Parent::default());
    assert_eq!(offer.map(drop), Err(Error::PeerGone));
    let put = world.bus.bus.put(&former, &world.queue, "".into(), (None, Parent::default()));
    assert_eq!(put.map(drop), Err(Error::PeerGone));
    assert!(matches!(keeper.take(), Taken::Empty));
    world.assert_empty();
}
