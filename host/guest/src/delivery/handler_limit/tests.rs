use std::{cell::RefCell, future::poll_fn};

use bytes::Bytes;
use tokio::time::{advance, timeout};
use weir_bus::{PeerId, Published};

use super::*;

const LIMIT: Duration = Duration::from_secs(64);

struct Stage {
    held: Arc<Held>,
    limit: HandlerLimit,
    warnings: RefCell<Vec<(String, Duration)>>,
    start: Instant,
}

impl Stage {
    fn new() -> Self {
        let held = Arc::<Held>::default();
        let limit = HandlerLimit::new(held.clone(), LIMIT);
        Self { held, limit, warnings: RefCell::default(), start: Instant::now() }
    }

    fn deliver(&self, topic: &str) {
        let published = Published {
            sender: PeerId::MAIN,
            topic: topic.parse().unwrap(),
            sequence: 7,
            at: 0,
            payload: Bytes::new(),
            trace: None,
        };
        self.held.hold_event(moment(Instant::now().into_std()), &Arc::new(published));
    }

    async fn wait(&mut self) -> Duration {
        let Self { limit, warnings, start, .. } = self;
        let warn = |at: &Handling| warnings.borrow_mut().push((at.operation.clone(), start.elapsed()));
        poll_fn(|context| limit.poll(context, warn)).await
    }

    async fn wait_for(&mut self, time: Duration) -> Option<Duration> {
        timeout(time, self.wait()).await.ok()
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_in_hand_is_warned_of_at_half_of_the_limit_and_over_at_all_of_it() {
    let mut stage = Stage::new();
    stage.deliver("a.b");
    let age = stage.wait().await;
    // The runtime's timers count in milliseconds.
    let about = LIMIT..LIMIT + Duration::from_millis(2);
    assert!(about.contains(&age) && about.contains(&stage.start.elapsed()), "{age:?}");
    // A part later at most.
    let [(what, warned)] = &*stage.warnings.take() else { panic!("it is warned of once") };
    assert_eq!(what, "event a.b");
    assert!((LIMIT / 2..LIMIT / 2 + LIMIT / 16).contains(warned), "{warned:?}");
    assert_eq!(stage.held.oldest(None).unwrap().sequence, Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_timer_is_set_only_while_something_is_in_hand() {
    let mut stage = Stage::new();
    assert_eq!(stage.wait_for(2 * LIMIT).await, None);
    assert!(!stage.limit.is_set);
    stage.deliver("a");
    assert_eq!(stage.wait_for(LIMIT / 4).await, None);
    assert!(stage.limit.is_set);
    stage.held.end_event();
    assert_eq!(stage.wait_for(2 * LIMIT).await, None);
    assert!(!stage.limit.is_set);
    assert!(stage.warnings.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_message_has_all_of_its_time() {
    let mut stage = Stage::new();
    for round in 0..8 {
        stage.deliver("a");
        assert_eq!(stage.wait_for(LIMIT / 4 * 3).await, None, "in round {round}");
        // The next receive brings the next one at once: no wait is without anything in hand.
    }
    assert_eq!(stage.warnings.borrow().len(), 8, "one for each");
    assert_eq!(stage.wait().await, LIMIT);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_main_uses_up_one_part_at_most() {
    let mut stage = Stage::new();
    let part = LIMIT / u32::try_from(PARTS).unwrap();
    stage.deliver("a");
    for _ in 0..3 {
        assert_eq!(stage.wait_for(Duration::from_millis(1)).await, None);
        advance(Duration::from_secs(3600)).await;
    }
    assert_eq!(stage.wait_for(LIMIT - 4 * part).await, None);
    assert!(stage.wait_for(4 * part).await.is_some_and(|age| age < LIMIT + part));
}

#[tokio::test(start_paused = true)]
async fn a_pause_before_the_instance_waits_is_none_of_its_time() {
    let mut stage = Stage::new();
    stage.deliver("a");
    advance(Duration::from_secs(3600)).await;
    assert_eq!(stage.wait_for(LIMIT / 2).await, None);
    assert!(stage.wait_for(LIMIT / 2).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_short_limit_holds_also_where_each_timer_is_late() {
    let mut stage = Stage::new();
    let limit = Duration::from_millis(160);
    stage.limit = HandlerLimit::new(stage.held.clone(), limit);
    stage.deliver("a");
    while stage.wait_for(Duration::from_millis(1)).await.is_none() {
        advance(Duration::from_millis(20)).await;
    }
    assert!(stage.start.elapsed() < limit * 3 / 2, "{:?}", stage.start.elapsed());
}
