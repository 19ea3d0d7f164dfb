//! What frames that have not come, and answers that nobody reads, cost in memory.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{
    alone,
    process::private_memory,
    support::{Stage, call},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
limits.sessions = 200
limits.in-flight = 64
limits.message-rate = 1_000_000
limits.stall-timeout = '1s'
limits.message-size = '64 MiB'
limits.inbox.bytes = '64 MiB'
";

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_a_frame_reserves_no_memory() {
    let _alone = alone().await;
    let stage = Stage::new(FILE).await;
    stage.works().await;
    let before = private_memory();
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut raw = stage.raw("app:polite").await;
        raw.send_bytes(&(64_u32 << 20).to_le_bytes()).await;
        raw.send_bytes(&[0x10; 1000]).await;
        all.push(raw);
    }
    stage.works().await;
    let grown = private_memory().saturating_sub(before);
    assert!(grown < 100 * (128 << 10), "{grown} bytes for 100 frames that have not come");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_read_is_ended_and_costs_what_it_has_under_way() {
    let _alone = alone().await;
    let stage = Stage::new(FILE).await;
    stage.works().await;
    let (before, began) = (private_memory(), Instant::now());
    let mut raw = stage.raw("app:polite").await;
    let mut sent = 0_u32;
    // Each answer has 100,000 bytes; none is read.
    let flood = async {
        loop {
            sent += 1;
            raw.send(&[call(sent, "big", "")]).await;
            if stage.sessions() == 0 {
                break;
            }
        }
    };
    let most = AtomicU64::new(0);
    let watch = async {
        loop {
            most.fetch_max(private_memory(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! { () = flood => {} () = watch => {} }
    assert!(began.elapsed() >= Duration::from_secs(1) && began.elapsed() < Duration::from_secs(8));
    let grown = most.into_inner().saturating_sub(before);
    assert!(grown < 64 * 100_000 + (8 << 20), "{grown} bytes");
    stage.works().await;
}
