//! Pollables: kept, repeated, dropped in the wrong order, and too many.

use super::stage::{Fault, Stage, hostile_with};

fn poller() -> weir_host::ExtensionConfig {
    hostile_with(|h| {
        h.subscribes = vec!["own".parse().unwrap()];
        h.publishes = vec!["own".parse().unwrap()];
    })
}

/// Case 53.
#[tokio::test]
async fn a_pollable_of_the_inbox_outlives_its_subscription_and_says_what_is() {
    let stage = Stage::start(vec![poller()]).await;
    let (told, _) = stage.beside(stage.tell("poll-kept 20000 own")).await;
    assert_eq!(told.unwrap(), "2 ready with an event, 0 of 20000 without, at last false");
    assert_eq!(stage.tell("echo on").await.unwrap(), "on");
}

/// Case 53: many at once, equal and different ones.
#[tokio::test]
async fn as_many_as_one_may_hold_can_be_polled_at_once() {
    let stage = Stage::start(vec![poller()]).await;
    assert_eq!(stage.tell("poll-repeated 512").await.unwrap(), "512");
    assert_eq!(stage.tell("poll-distinct 200").await.unwrap(), "[199]");
    // A timer counts once, however many there were before.
    for _ in 0..3 {
        assert_eq!(stage.tell("poll-distinct 500").await.unwrap(), "[499]");
    }
    stage.stands().await;
}

/// Case 53: each is a trap of the guest alone.
#[tokio::test]
async fn pollables_used_wrongly_are_a_trap() {
    for (command, fault) in [
        (
            "poll-repeated 513",
            Fault::new("trapped: asked for 513 of `resources`, but 512 are allowed").limit(
                "resources",
                513,
                512,
            ),
        ),
        (
            // A handle in a list takes the host 16 bytes: these are more than one call carries.
            "poll-repeated 1000000",
            Fault::new("trapped: asked for 1000000 of `resources`, but 512 are allowed").limit(
                "resources",
                1_000_000,
                512,
            ),
        ),
        ("poll-nothing", Fault::new("trapped: empty poll list")),
        ("drop-parent-first", Fault::new("trapped: resource has children")),
        ("hoard-pollables", Fault::new("trapped: `resources` of 512 used up").limit("resources", 512, 512)),
        ("poll-distinct 513", Fault::new("trapped: `resources` of 512 used up").limit("resources", 512, 512)),
    ] {
        let stage = Stage::start(vec![poller()]).await;
        let (told, _) = stage.beside(stage.tell(command)).await;
        assert_eq!(told, Err("Trapped".to_owned()), "{command}");
        stage.failed("hostile", &fault.asked()).await;
        stage.main.control().start("hostile").await.unwrap();
        assert_eq!(stage.tell("poll-distinct 200").await.unwrap(), "[199]");
    }
}
