//! The sender pays for the host's work: fuel by the byte, `cpu-share` by the delivery.

use std::time::Duration;

use weir_host::{
    ExtensionConfig, Service,
    config::{DirGrant, Limits},
    limits::{ExtensionLimits, LimitValue},
};

use super::{
    stage::{Fault, Stage, hostile_with},
    support::{extension, puppet_with, set, tell},
};

/// Payload bytes copied for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

fn sink() -> Service {
    Service::new("sink@1".parse().unwrap()).on("take".parse().unwrap(), async |_| Ok("".into()))
}

fn another(id: &str) -> ExtensionConfig {
    let mut another = extension(id, "hostile");
    another.fulfills = vec![format!("{id}@1").parse().unwrap()];
    another.wants = vec!["sink@1".parse().unwrap()];
    another.publishes = vec![">".parse().unwrap()];
    set(&mut another, "contract", &format!("{id}@1"));
    another
}

async fn limits(stage: &Stage, id: &str) -> ExtensionLimits {
    stage.main.control().limits_of(id).await.unwrap().extensions.pop().unwrap()
}

/// The most fuel of a message so far.
async fn fuel(stage: &Stage, id: &str) -> u64 {
    let report = limits(stage, id).await;
    let shown = report.limits.iter().find(|limit| limit.key == "fuel-per-message").unwrap();
    let Some(LimitValue::Count(peak)) = shown.peak else { panic!("{shown:?}") };
    peak
}

#[tokio::test]
async fn each_way_of_sending_costs_fuel_by_the_byte() {
    const WAYS: [&str; 5] = ["call", "send", "publish", "respond", "log"];
    const FEW: u64 = 1;
    const MANY: u64 = 101;
    const SIZES: [u64; 3] = [0, 16_000, 64_000];
    let id = |way: &str, times: u64, bytes: u64| format!("{way}-{times}-{bytes}");
    let senders = WAYS.iter().flat_map(|way| {
        SIZES.into_iter().flat_map(move |bytes| [FEW, MANY].map(|times| another(&id(way, times, bytes))))
    });
    let stage = Stage::with(senders.collect(), Some(sink())).await;
    for way in WAYS {
        let mut costs = Vec::new();
        for bytes in SIZES {
            let mut used = Vec::new();
            for times in [FEW, MANY] {
                let id = id(way, times, bytes);
                let told = tell(&stage.main, &id, &format!("pay {way} {times} {bytes}")).await;
                assert_eq!(told.unwrap().len() as u64, if way == "respond" { bytes } else { 0 }, "{id}");
                // A message's use counts when its receiver comes back for the next.
                assert_eq!(tell(&stage.main, &id, "echo on").await.unwrap(), "on");
                used.push(fuel(&stage, &id).await);
            }
            // Without making the payload.
            costs.push((used[1] - used[0]) / (MANY - FEW));
        }
        for (bytes, cost) in SIZES.into_iter().zip(&costs) {
            let by_the_byte = cost - costs[0];
            // Of a log line, a bit more than is shown is copied.
            let copied = if way == "log" { bytes.min(4100) } else { bytes };
            assert!(by_the_byte.abs_diff(copied / BYTES_PER_FUEL) <= 10, "{way} of {bytes}: {costs:?}");
        }
    }
    stage.stands().await;
}

#[tokio::test]
async fn a_path_that_is_refused_for_its_length_costs_as_much_fuel_as_a_call_however_long_it_is() {
    /// Of a call into the host, at least.
    const CALL: u64 = 500;
    const FEW: u64 = 1;
    const MANY: u64 = 101;
    const SIZES: [u64; 2] = [17_000, 3_000_000];
    let place = tempfile::tempdir().unwrap();
    let id = |times: u64, bytes: u64| format!("paths-{times}-{bytes}");
    let asks = |id: String| {
        let mut asks = another(&id);
        asks.grants.dirs = vec![DirGrant::read_only(place.path(), "/ro".parse().unwrap())];
        asks
    };
    let all = SIZES.into_iter().flat_map(|bytes| [FEW, MANY].map(|times| asks(id(times, bytes))));
    let stage = Stage::with(all.collect(), Some(sink())).await;
    for bytes in SIZES {
        let mut used = Vec::new();
        for times in [FEW, MANY] {
            let id = id(times, bytes);
            let told = tell(&stage.main, &id, &format!("ask-again {times} {bytes}")).await;
            assert_eq!(told.unwrap(), "name-too-long");
            // A message's use counts when its receiver comes back for the next.
            assert_eq!(tell(&stage.main, &id, "echo on").await.unwrap(), "on");
            used.push(fuel(&stage, &id).await);
        }
        // Without making the path.
        let cost = (used[1] - used[0]) / (MANY - FEW);
        assert!((CALL..3 * CALL).contains(&cost), "{cost} of {bytes}");
    }
    stage.stands().await;
}

#[tokio::test]
async fn what_a_publish_costs_in_fan_out_is_of_the_publishers_share_and_never_a_trap() {
    // Less than a hundredth of the deliveries' cost in fuel.
    const FUEL: u64 = 2_000_000;
    const TOPIC: &str = "a.b.c.d.e.f.g.h";
    const SHARE: f64 = 0.05;
    /// Seconds of its share that are free of delays.
    const BURST: f64 = 0.5;
    let mut publisher = another("loud");
    publisher.limits.fuel_per_message = FUEL;
    publisher.limits.cpu_share = "5%".parse().unwrap();
    let subscribers = ["s0", "s1", "s2", "s3"];
    let subscriber = |id: &str| {
        let mut subscriber = another(id);
        subscriber.subscribes = vec![">".parse().unwrap()];
        set(&mut subscriber, "start", &format!("subscribe-variants 250 {TOPIC}"));
        subscriber.limits.stop_timeout = Duration::from_millis(200);
        subscriber
    };
    let extensions = subscribers.map(subscriber).into_iter().chain([publisher]);
    let stage = Stage::with(extensions.collect(), Some(sink())).await;
    let cpu = subscribers.map(|id| stage.status(id).cpu);
    let (told, _) = stage.beside(tell(&stage.main, "loud", &format!("publish 1000 0 {TOPIC}"))).await;
    // 256 wait for each subscriber.
    assert_eq!(told.unwrap(), format!("delivered 1000000, shed {}", 1_000_000 - 4 * 256));
    assert_eq!(tell(&stage.main, "loud", "echo on").await.unwrap(), "on");
    let delayed = async |id: &str| limits(&stage, id).await.delayed.unwrap();
    let (loud, took) = (delayed("loud").await.as_secs_f64(), stage.status("loud").cpu.as_secs_f64());
    assert!(loud > 0.0 && loud + took > 0.8 * (took / SHARE - BURST), "{took} s, and {loud} s of delays");
    for (id, before) in subscribers.into_iter().zip(cpu) {
        assert_eq!(delayed(id).await, Duration::ZERO, "{id}");
        // It may still have been going to sleep after its start.
        let own = stage.status(id).cpu - before;
        assert!(own.as_secs_f64() < took / 100.0, "{id}: {own:?} of {took} s");
    }
    assert_eq!(stage.status("loud").failures, []);
    stage.stands().await;
}

/// Fixed limits are enforced, too; tables, instances and memories in `memory.rs`, randomness in `output.rs`.
#[tokio::test]
async fn subscriptions_open_operations_and_resources_end_at_what_the_class_has() {
    for (limits, subscriptions, operations, resources) in
        [(Limits::min(), 64, 256, 128), (Limits::medium(), 256, 1024, 512)]
    {
        let class = limits.class.clone();
        let hostile = hostile_with(|h| {
            let ready_timeout = h.limits.ready_timeout;
            h.limits = limits;
            h.limits.ready_timeout = ready_timeout;
            h.subscribes = vec![">".parse().unwrap()];
            h.wants = vec!["down@1".parse().unwrap()];
        });
        // An extension that is down may have any operation.
        let down = puppet_with("down", |down| down.autostart = false);
        let stage = Stage::start(vec![hostile, down]).await;
        let refused = |name: &str, allowed: u64| {
            let used = allowed + 1;
            format!(
                "{allowed}, then Error::LimitExceeded(Limit {{ name: \"{name}\", used: {used}, allowed: {allowed} }})"
            )
        };
        for _again in 0..2 {
            let told = stage.tell("subscribe-all own").await.unwrap();
            assert_eq!(told, refused("subscriptions", subscriptions), "{class}");
        }
        let told = stage.tell("open-all down@1").await.unwrap();
        assert_eq!(told, refused("open-operations", operations), "{class}");
        assert_eq!(stage.tell("echo on").await.unwrap(), "on");
        assert_eq!(stage.tell("hoard-pollables").await, Err("Trapped".to_owned()));
        let cause = format!("trapped: `resources` of {resources} used up");
        let fault = Fault::new(&cause);
        stage.failed("hostile", &fault.limit("resources", resources, resources).asked()).await;
        // Subscriptions go with the extension's stop; the rest with the instance.
        stage.main.control().stop("hostile").await.unwrap();
        let receipt = stage.main.client().publish("own.n0", "").await.unwrap();
        assert_eq!((receipt.delivered, receipt.shed), (0, 0));
    }
}
