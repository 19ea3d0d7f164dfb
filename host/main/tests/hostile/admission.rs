//! Memory of all extensions together.

use std::{fs, path::Path};

use weir_host::{Config, Main, StartError, config::DirGrant};

use super::{
    stage::hostile,
    support::{config, puppet, set, tell},
};

const IDS: [&str; 4] = ["p0", "p1", "p2", "p3"];

/// Four instances as in `medium`: 16.5 MiB of memory, 1 of stack, 2 of inbox. A running one leaves a file.
fn instances(memory_budget: u64, traces: &Path) -> Config {
    let leaves_trace = |id: &str| {
        let mut instance = puppet(id);
        instance.grants.dirs = vec![DirGrant::read_write(traces, "/traces".parse().unwrap())];
        set(&mut instance, "start", &format!("write /traces/{id} ran"));
        instance
    };
    let mut config = config(IDS.map(leaves_trace).into());
    config.main.memory_budget = Some(memory_budget);
    config
}

fn traces(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Case 10.
#[tokio::test]
async fn many_just_under_their_cap_are_refused_before_anything_runs() {
    let each = hostile().memory_sum();
    let directory = tempfile::tempdir().unwrap();
    let error = Main::builder(instances(4 * each - 1, directory.path())).start().await.unwrap_err();
    let StartError::Config(error) = error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("`main.memory-budget` is"), "{text}");
    for id in IDS {
        assert!(text.contains(id), "{text}");
    }
    assert_eq!(traces(directory.path()), 0, "none of them ran");
    let main = Main::builder(instances(4 * each, directory.path())).start().await.unwrap();
    assert_eq!(traces(directory.path()), IDS.len());
    assert_eq!(tell(&main, "p3", "echo here").await.unwrap(), "here");
}
