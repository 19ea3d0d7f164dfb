//! What all extensions may take together.

use weir_host::{Config, Main, StartError};

use super::{
    stage::hostile,
    support::{config, puppet, tell},
};

/// As many instances, each with the limits of `medium`: 16 MiB of memory, 1 of stack, 2 of inbox.
fn instances(count: usize, memory_budget: u64) -> Config {
    let mut config = config((0..count).map(|number| puppet(&format!("p{number}"))).collect());
    config.main.memory_budget = Some(memory_budget);
    config
}

/// Case 10.
#[tokio::test]
async fn many_just_under_their_cap_are_refused_before_anything_runs() {
    let each = hostile().limits.memory_sum();
    let error = Main::builder(instances(4, 4 * each - 1)).start().await.unwrap_err();
    let StartError::Config(error) = error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("`main.memory-budget` is"), "{text}");
    for id in ["p0", "p1", "p2", "p3"] {
        assert!(text.contains(id), "{text}");
    }
    let main = Main::builder(instances(4, 4 * each)).start().await.unwrap();
    assert_eq!(tell(&main, "p3", "echo here").await.unwrap(), "here");
}
