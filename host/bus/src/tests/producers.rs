//! Eight threads put jobs and publish, while readers come, go and die, and the queue closes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::AtomicBool,
};

use tokio::{runtime::Handle, task::spawn_blocking};
use weir_names::QueuePolicy;

use super::*;

const PRODUCERS: u64 = 8;
const MESSAGES: u64 = 1000;
const READERS: usize = 3;

fn configure(bus: &TestBus) {
    let settings = QueueSettings {
        messages: 16,
        when_full: QueuePolicy::Block,
        max_deliveries: u32::MAX,
        ..queues::SETTINGS
    };
    bus.configure_queues(vec![("q".parse().unwrap(), settings, None)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_job_that_eight_threads_put_is_done_once_while_readers_die_and_the_queue_closes() {
    let bus = Arc::new(TestBus::new());
    configure(&bus);
    let queue = bus.queue("q").unwrap();
    let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<BTreeSet<_>>>::default());
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (queue, is_over, done) = (queue.clone(), is_over.clone(), done.clone());
            spawn_blocking(move || take_jobs(&queue, &is_over, &done))
        })
        .collect();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let (bus, queue) = (bus.clone(), queue.clone());
            spawn_blocking(move || put_all(&bus, &queue))
        })
        .collect();
    let mut closings = 0;
    while !producers.iter().all(|producer| producer.is_finished()) {
        bus.configure_queues(vec![]);
        tokio::task::yield_now().await;
        configure(&bus);
        closings += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_over.store(true, Ordering::Release);
    for reader in readers {
        reader.await.unwrap();
    }
    let mut put = BTreeSet::new();
    for producer in producers {
        put.extend(producer.await.unwrap());
    }
    assert!(closings > 0 && !put.is_empty());
    let stats = queue.status();
    assert_eq!((stats.waiting, stats.in_hand, stats.bytes, stats.blocked), (0, 0, 0, 0));
    let done = done.lock().unwrap();
    assert_eq!((stats.put, stats.done), (done.len() as u64, done.len() as u64));
    // Perhaps with jobs that got in just as their senders gave up.
    assert!(put.is_subset(&done));
}

/// The jobs that their senders know got in.
fn put_all(bus: &TestBus, queue: &Arc<SharedQueue>) -> BTreeSet<MessageId> {
    let put = |number: u64| {
        let job = Bytes::copy_from_slice(&number.to_be_bytes());
        let timeout = number.is_multiple_of(3).then_some(Duration::from_millis(1));
        let put = Handle::current().block_on(async {
            // Every fifth sender gives up at once.
            let putting = bus.bus.put(bus.main(), queue, job, (timeout, Parent::default()))?;
            match number % 5 {
                0 => putting.put().now_or_never().unwrap_or(Err(Error::Timeout)),
                _ => putting.put().await,
            }
        });
        match put {
            Ok(id) => Some(id),
            // The last error: turned away by a queue that is open again by now.
            Err(Error::NoProvider(_) | Error::Timeout | Error::Overloaded(_)) => None,
            Err(other) => panic!("{other:?}"),
        }
    };
    (0..MESSAGES).filter_map(put).collect()
}

/// One reader after the other finishes some jobs, gives some back, and leaves.
fn take_jobs(queue: &Arc<SharedQueue>, is_over: &AtomicBool, done: &Mutex<BTreeSet<MessageId>>) {
    while !is_over.load(Ordering::Acquire) || is_busy(queue) {
        let thread = thread::current();
        let reader = JobReader::new("reader".into(), u64::MAX, None, move || thread.unpark());
        for number in 0..20 {
            queue.enlist(&reader);
            if !reader.has_job() {
                thread::park_timeout(Duration::from_millis(1));
            }
            let Some(job) = queue.take(&reader) else { continue };
            if number % 7 != 3 {
                assert!(done.lock().unwrap().insert(job.get().id), "done twice");
                job.done();
            }
        }
        // Perhaps holding a job that it was handed.
        queue.enlist(&reader);
        queue.leave(&reader);
    }
}

fn is_busy(queue: &SharedQueue) -> bool {
    let stats = queue.status();
    stats.waiting + stats.in_hand > 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_of_eight_threads_is_seen_in_order_or_counted_as_lost_while_some_come_back() {
    let bus = Arc::new(TestBus::new());
    let peer = bus.ready("a", &[], &[]);
    bus.subscribe(&peer, peer.inbox(), "t").unwrap();
    let publishers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let bus = bus.clone();
            spawn_blocking(move || {
                for number in 0..MESSAGES {
                    let payload = [producer.to_be_bytes(), number.to_be_bytes()].concat();
                    bus.publish(bus.main(), None, "t", payload.into()).unwrap();
                }
            })
        })
        .collect();
    let mut seen = Seen::default();
    let mut round = 0;
    while !publishers.iter().all(|publisher| publisher.is_finished()) {
        let batch: Vec<_> = std::iter::from_fn(|| take_any(&peer)).take(1 + round % 4).collect();
        match round % 5 {
            0 => peer.give_back(batch.into_iter().map(Incoming::Event).collect(), &[]),
            _ => batch.into_iter().for_each(|event| seen.note(&event)),
        }
        round += 1;
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
    while let Some(event) = take_any(&peer) {
        seen.note(&event);
    }
    // Losses at the end show in the next event.
    let last = [PRODUCERS.to_be_bytes(), 0_u64.to_be_bytes()].concat();
    bus.publish(bus.main(), None, "t", last.into()).unwrap();
    seen.note(&take_event(peer.inbox()));
    assert!(seen.last.len() > 1);
    assert_eq!(seen.number + seen.lost, PRODUCERS * MESSAGES + 1);
    assert_eq!(peer.inbox().depth(), (0, 0));
}

fn take_any(peer: &Peer) -> Option<Event> {
    match peer.take() {
        Taken::Message(Incoming::Event(event)) => Some(event),
        Taken::Empty => None,
        other => panic!("no event but {other:?}"),
    }
}

/// The events that a reader saw.
#[derive(Default)]
struct Seen {
    number: u64,
    lost: u64,
    /// The last one of each producer.
    last: BTreeMap<u64, u64>,
}

impl Seen {
    fn note(&mut self, event: &Event) {
        let (producer, number) = event.published.payload.split_at(8);
        let [producer, number] = [producer, number].map(|half| u64::from_be_bytes(half.try_into().unwrap()));
        let former = self.last.insert(producer, number);
        assert!(former < Some(number), "{producer}: {number} came after {former:?}");
        self.number += 1;
        self.lost += event.lost;
    }
}
