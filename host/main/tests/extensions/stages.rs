//! A reload in stages: dependents after what they require, and no further than the first stage that does not hold.

use std::{fs, path::PathBuf, time::Duration};

use tempfile::TempDir;
use weir_host::{
    Main,
    config::Effect,
    control::{ControlError, ExtensionState, Holds, PlannedStage, ReloadReport, Standing},
    events::MainEvent,
    names::ExtensionId,
};

use super::{
    reload::{TRAPS, write},
    support::{Gate, PATIENCE, config, puppet, puppet_with, reached, set, start, tell},
    versions,
};

const UPDATE: &str = "update = { prove-for = '1h' }";

/// `c` requires `b`, which requires `a`. Each has a file of its own.
struct Chain(TempDir);

impl Chain {
    fn new(update: &str) -> Self {
        let chain = Self(tempfile::tempdir().unwrap());
        chain.configure(&[("a", ""), ("b", "requires = ['a@1']"), ("c", "requires = ['b@1']")], update);
        for id in ["a", "b", "c"] {
            chain.put(id, 1);
        }
        chain
    }

    fn configure(&self, extensions: &[(&str, &str)], more: &str) {
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
        let mut text =
            format!("[main]\nstate-dir = 'state'\ncache-dir = '{cache}'\nrequest-timeout = '2m'\n");
        for (id, keys) in extensions {
            text += &format!(
                "[[extension]]\nid = '{id}'\npath = '{id}.wasm'\nfulfills = ['{id}@1']\n\
                 config.contract = '{id}@1'\nlimits.ready-timeout = '2m'\nlimits.stop-timeout = '2m'\n\
                 {keys}\n{more}\n"
            );
        }
        write(&self.path("weir.toml"), text.as_bytes());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A puppet, in bytes that differ by the version.
    fn put(&self, id: &str, version: u8) {
        let mut bytes = fs::read(test_guests::path("puppet")).unwrap();
        bytes.extend([0, 3, 1, b'v', version]);
        write(&self.path(&format!("{id}.wasm")), &bytes);
    }

    fn put_bad(&self, id: &str) {
        write(&self.path(&format!("{id}.wasm")), &wat::parse_str(TRAPS).unwrap());
    }

    async fn start(&self) -> Main {
        versions::start(self.0.path()).await
    }
}

async fn reload(main: &Main, holds: Holds) -> ReloadReport {
    main.control().reload_in_stages(None, holds).await.unwrap()
}

fn ids<'i>(ids: impl IntoIterator<Item = &'i ExtensionId>) -> String {
    ids.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn failed(report: &ReloadReport) -> String {
    ids(report.failed.iter().map(|failed| &failed.extension))
}

/// The planned stages as text, as in `1: a, 3: c`.
fn planned(main: &Main) -> String {
    let stages = main.control().plan(None).unwrap().stages;
    let text =
        stages.iter().map(|PlannedStage { stage, extensions, .. }| format!("{stage}: {}", ids(extensions)));
    text.collect::<Vec<_>>().join(", ")
}

fn restarts(main: &Main) -> [u64; 3] {
    ["a", "b", "c"].map(|id| main.control().status(id).unwrap().restarts)
}

#[tokio::test]
async fn behind_a_stage_that_does_not_come_up_nothing_is_touched_until_it_is_repaired() {
    for update in ["", UPDATE] {
        let chain = Chain::new(update);
        let main = chain.start().await;
        if !update.is_empty() {
            for id in ["a", "b", "c"] {
                main.control().accept_version(id).await.unwrap();
            }
        }
        assert_eq!(planned(&main), "");
        chain.put("a", 2);
        chain.put_bad("b");
        chain.put("c", 2);
        assert_eq!(planned(&main), "1: a, 2: b, 3: c");
        let report = reload(&main, Holds::Up).await;
        assert_eq!((ids(&report.changed), failed(&report)), ("a".to_owned(), "b".to_owned()), "{report:?}");
        assert_eq!((report.stopped_at, ids(&report.not_reached)), (Some(2), "c".to_owned()));
        assert_eq!(restarts(&main)[2], 0);
        assert_eq!(tell(&main, "b", "echo 1").await.unwrap(), "1", "the version before serves");

        // Nothing was repaired.
        assert_eq!(planned(&main), "2: b, 3: c");
        let plan = main.control().plan(None).unwrap();
        assert_eq!(plan.held_back.len(), usize::from(!update.is_empty()));
        for instead in &plan.held_back {
            assert_eq!((instead.extension.as_str(), instead.version), ("b", 1));
            assert!(instead.reason.starts_with("version 2 was refused: it did not come up: "), "{plan:?}");
        }
        let report = reload(&main, Holds::Up).await;
        assert_eq!((ids(&report.changed), failed(&report)), (String::new(), "b".to_owned()), "{report:?}");
        assert_eq!((restarts(&main)[0], restarts(&main)[2]), (1, 0));

        chain.put("b", 2);
        let report = reload(&main, Holds::Up).await;
        assert_eq!((ids(&report.changed), failed(&report)), ("b c".to_owned(), String::new()), "{report:?}");
        assert_eq!((report.stopped_at, planned(&main)), (None, String::new()));
        assert_eq!((restarts(&main)[0], restarts(&main)[2]), (1, 1));
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_stage_waits_until_its_versions_are_proven() {
    let chain = Chain::new("update = { prove-for = '1s' }");
    let main = chain.start().await;
    for id in ["a", "b", "c"] {
        // Its time may be over already.
        let _proven = main.control().accept_version(id).await;
        chain.put(id, 2);
    }
    let mut events = main.control().events();
    let report = reload(&main, Holds::Proven).await;
    assert_eq!((ids(&report.changed), failed(&report)), ("a b c".to_owned(), String::new()), "{report:?}");
    main.shutdown().await.unwrap();
    let mut order = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            MainEvent::State { extension, to: ExtensionState::Starting, .. } => {
                order.push(format!("{extension} starts"))
            }
            MainEvent::Version { extension, change } if change.standing == Standing::Proven => {
                order.push(format!("{extension} is proven"));
            }
            MainEvent::Stopping => break,
            _ => {}
        }
    }
    let in_turn = ["a", "b", "c"].map(|id| [format!("{id} starts"), format!("{id} is proven")]);
    assert_eq!(order, in_turn.concat());
}

/// A chain whose new versions are on probation for an hour, and a reload that waits for `a` to be proven.
async fn waiting(update: &str) -> (Chain, Main, tokio::task::JoinHandle<ReloadReport>) {
    let chain = Chain::new(update);
    let main = chain.start().await;
    for id in ["a", "b", "c"] {
        // Its time may be over already.
        let _proven = main.control().accept_version(id).await;
        chain.put(id, 2);
    }
    let control = main.control().clone();
    let reloading = tokio::spawn(async move { control.reload_in_stages(None, Holds::Proven).await.unwrap() });
    until_serves(&main, "a", 2).await;
    (chain, main, reloading)
}

async fn until_serves(main: &Main, id: &str, version: u64) {
    let serves = async {
        while main.control().status(id).unwrap().version.map(|version| version.number) != Some(version) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, serves).await.unwrap();
}

#[tokio::test]
async fn a_version_that_is_refused_or_stopped_while_its_stage_waits_is_the_last_stage() {
    for order in ["rollback", "stop"] {
        let (_chain, main, reloading) = waiting(UPDATE).await;
        main.control().accept_version("a").await.unwrap();
        until_serves(&main, "b", 2).await;
        assert!(main.control().is_reloading());
        let second = main.control().reload().await.unwrap_err();
        assert_eq!(second, ControlError::Reloading("the configuration".to_owned()));
        match order {
            "rollback" => main.control().roll_back("b", None).await.unwrap(),
            _ => main.control().stop("b").await.unwrap(),
        }
        let report = reloading.await.unwrap();
        let why = report.failed[0].reason.as_str();
        let expected = match order {
            "rollback" => "version 2 was refused: an operator rolled it back",
            _ => "it is stopped before it was proven",
        };
        assert_eq!((failed(&report), why), ("b".to_owned(), expected));
        assert_eq!((ids(&report.changed), report.stopped_at), ("a".to_owned(), Some(2)));
        assert_eq!((ids(&report.not_reached), restarts(&main)[2]), ("c".to_owned(), 0));
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_stage_waits_for_its_canary_and_for_the_instances_that_follow() {
    let chain = Chain::new(UPDATE);
    chain.configure(&[("a", "instances = 3"), ("b", "requires = ['a@1']"), ("c", "")], UPDATE);
    let main = chain.start().await;
    for id in ["a", "b", "c"] {
        // Its time may be over already.
        let _proven = main.control().accept_version(id).await;
    }
    let numbers = || {
        let of = |id| main.control().status(id).unwrap().version.map(|version| version.number);
        ["a", "a.2", "a.3"].map(of)
    };
    let reloading = || {
        let control = main.control().clone();
        tokio::spawn(async move { control.reload_in_stages(None, Holds::Proven).await.unwrap() })
    };
    chain.put("a", 2);
    let report = reloading();
    until_serves(&main, "a.3", 2).await;
    assert_eq!((numbers(), planned(&main)), ([Some(1), Some(1), Some(2)], String::new()));
    // Another one waits for the same proof, though nothing is left to change.
    report.abort();
    assert!(report.await.unwrap_err().is_cancelled());
    let ended = async {
        while main.control().is_reloading() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    let report = reloading();
    while !main.control().is_reloading() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    chain.put("b", 2);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(restarts(&main)[1], 0);
    main.control().accept_version("a").await.unwrap();
    until_serves(&main, "b", 2).await;
    assert_eq!(numbers(), [Some(2); 3]);
    main.control().accept_version("b").await.unwrap();
    let report = report.await.unwrap();
    assert_eq!((ids(&report.changed), failed(&report)), ("b".to_owned(), String::new()));

    chain.put("a", 3);
    let report = reloading();
    until_serves(&main, "a.3", 3).await;
    main.control().roll_back("a", None).await.unwrap();
    let report = report.await.unwrap();
    let why = report.failed[0].reason.as_str();
    // Those that follow the canary may still be on their way to it.
    assert!(failed(&report).ends_with("a.3"), "{report:?}");
    assert_eq!(why, "version 3 was refused: an operator rolled it back");
    assert_eq!(report.stopped_at, Some(1));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_stage_does_not_hold_if_another_version_takes_the_place_of_one_that_it_waits_for() {
    let (chain, main, reloading) = waiting(UPDATE).await;
    chain.put("a", 3);
    main.control().reload_extension("a").await.unwrap();
    let report = tokio::time::timeout(PATIENCE, reloading).await.unwrap().unwrap();
    let why = report.failed[0].reason.as_str();
    assert_eq!((failed(&report).as_str(), why), ("a", "another version took the place of version 2"));
    assert_eq!((report.stopped_at, restarts(&main)[1]), (Some(1), 0));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_stage_does_not_wait_for_ever_for_a_version_that_does_not_run() {
    let restart = "restart = { backoff = '1h', max-backoff = '1h' }";
    let update = format!("update = {{ prove-for = '5s', max-failures = 9 }}\n{restart}");
    let (_chain, main, reloading) = waiting(&update).await;
    let _trapped = tell(&main, "a", "trap").await;
    reached(&main, "a", ExtensionState::BackingOff).await;
    let report = tokio::time::timeout(PATIENCE, reloading).await.unwrap().unwrap();
    let fault = report.failed.first().map(|failed| (failed.extension.as_str(), failed.reason.as_str()));
    let late = "it is not proven after 10s: it did not run all the time";
    assert_eq!((fault, report.stopped_at), (Some(("a", late)), Some(1)), "{report:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_reload_whose_asker_leaves_ends_with_its_stage() {
    let (chain, main, reloading) = waiting(UPDATE).await;
    reloading.abort();
    let ended = async {
        while main.control().is_reloading() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert_eq!(restarts(&main)[1..], [0, 0]);
    // Another one goes on.
    chain.put("b", 1);
    let report = reload(&main, Holds::Up).await;
    assert_eq!((ids(&report.changed), report.stopped_at), ("c".to_owned(), None), "{report:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_the_reload_at_its_stage() {
    let (_chain, main, reloading) = waiting(UPDATE).await;
    main.shutdown().await.unwrap();
    let report = reloading.await.unwrap();
    assert_eq!((report.stopped_at, ids(&report.not_reached)), (Some(1), "b c".to_owned()), "{report:?}");

    let gate = Gate::new();
    let slow = puppet_with("slow", |slow| slow.wants = vec!["gate@1".parse().unwrap()]);
    let after = puppet_with("after", |after| after.wants = vec!["slow@1".parse().unwrap()]);
    let main = gate.start(vec![slow.clone(), after.clone()]).await;
    let changed = [slow, after].map(|mut extension| {
        set(&mut extension, "other", "1");
        extension
    });
    let [mut slow, after] = changed;
    set(&mut slow, "start", "call gate@1 pass");
    let (control, new) = (main.control().clone(), Gate::config(vec![slow, after]));
    let reloading = tokio::spawn(async move { control.reload_in_stages(Some(new), Holds::Up).await });
    reached(&main, "slow", ExtensionState::Starting).await;
    gate.open(1);
    main.shutdown().await.unwrap();
    let ended = reloading.await.unwrap();
    assert!(matches!(&ended, Ok(_) | Err(ControlError::ShuttingDown)), "{ended:?}");
}

#[tokio::test]
async fn what_is_removed_stays_as_long_as_one_that_calls_it_is_not_changed() {
    let user = |start: &str, wants: &[&str]| {
        puppet_with("user", |user| {
            user.config.extend((!start.is_empty()).then(|| ("start".to_owned(), start.to_owned())));
            user.wants = wants.iter().map(|name| name.parse().unwrap()).collect();
        })
    };
    let new = puppet_with("new", |new| new.wants = vec!["user@1".parse().unwrap()]);
    let main = start(vec![puppet("old"), user("", &["old@1"])]).await;
    let bad = config(vec![new.clone(), user("trap", &[])]);
    let report = main.control().reload_in_stages(Some(bad), Holds::Up).await.unwrap();
    assert_eq!((failed(&report), report.stopped_at), ("user".to_owned(), Some(1)));
    assert_eq!(ids(&report.not_reached), "new old");
    assert_eq!(tell(&main, "user", "call old@1 run echo 1").await.unwrap(), "1");
    assert_eq!(main.control().status("new").unwrap_err(), ControlError::Unknown("new".to_owned()));
    let listed = main.control().extensions();
    assert_eq!(ids(listed.iter().map(|status| &status.id)), "user old");

    let good = config(vec![new, user("", &[])]);
    let report = main.control().reload_in_stages(Some(good), Holds::Up).await.unwrap();
    assert_eq!(
        (ids(&report.added), ids(&report.removed)),
        ("new".to_owned(), "old".to_owned()),
        "{report:?}"
    );
    assert_eq!((ids(&report.changed), report.stopped_at), ("user".to_owned(), None));
    let listed = main.control().extensions();
    assert_eq!(ids(listed.iter().map(|status| &status.id)), "new user");
    // Of each extension one change.
    let extensions = report.differences.iter().filter(|it| it.takes_effect == Effect::AtOnce);
    assert_eq!(extensions.filter(|it| it.table.starts_with("extension.")).count(), 1, "{report:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_contract_moves_to_another_extension_within_its_stage() {
    let with = |id: &str, fulfills: &str, wants: &str| {
        puppet_with(id, |puppet| {
            puppet.fulfills = fulfills.split_whitespace().map(|name| name.parse().unwrap()).collect();
            puppet.wants = wants.split_whitespace().map(|name| name.parse().unwrap()).collect();
            set(puppet, "contract", fulfills.split_whitespace().next().unwrap_or("none@1"));
        })
    };
    let (giver, user) = (with("giver", "moved@1", ""), with("user", "user@1", "moved@1"));
    let main = start(vec![giver, with("taker", "taker@1", ""), user]).await;
    let changed = config(vec![
        with("giver", "giver@1", ""),
        with("taker", "moved@1 taker@1", ""),
        with("user", "user@1", "moved@1 taker@1"),
    ]);
    let report = main.control().reload_in_stages(Some(changed), Holds::Up).await.unwrap();
    assert_eq!((ids(&report.changed), failed(&report)), ("giver taker user".to_owned(), String::new()));
    assert_eq!(tell(&main, "user", "call moved@1 run own-name").await.unwrap(), "taker");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_new_extension_that_failed_is_started_by_the_next_reload_in_stages() {
    let chain = Chain::new("");
    let (a, c) = (("a", ""), ("c", ""));
    chain.configure(&[a, c], "");
    let main = chain.start().await;
    chain.configure(
        &[a, c, ("b", "requires = ['a@1']\nrestart.policy = 'never'"), ("d", "requires = ['b@1']")],
        "",
    );
    chain.put_bad("b");
    chain.put("d", 1);
    for _ in 0..2 {
        let report = reload(&main, Holds::Up).await;
        assert_eq!((failed(&report), report.stopped_at), ("b".to_owned(), Some(2)), "{report:?}");
        assert_eq!((ids(&report.not_reached), restarts_of(&main, "a")), ("d".to_owned(), 0));
        assert_eq!(main.control().status("b").unwrap().state, ExtensionState::Failed);
    }
    chain.put("b", 1);
    let report = reload(&main, Holds::Up).await;
    assert_eq!((ids(&report.changed), ids(&report.added)), ("b".to_owned(), "d".to_owned()), "{report:?}");
    reached(&main, "d", ExtensionState::Ready).await;
    main.shutdown().await.unwrap();
}

fn restarts_of(main: &Main, id: &str) -> u64 {
    main.control().status(id).unwrap().restarts
}

#[tokio::test]
async fn a_refused_version_whose_requirement_does_not_run_gives_way_at_the_start_of_main() {
    let chain = Chain::new("");
    let (first, second) = ([("a", ""), ("b", "")], [("a", ""), ("b", "requires = ['a@1']")]);
    chain.configure(&first, UPDATE);
    let main = chain.start().await;
    main.control().accept_version("b").await.unwrap();
    chain.configure(&second, UPDATE);
    let report = reload(&main, Holds::Up).await;
    assert_eq!((ids(&report.changed), failed(&report)), ("b".to_owned(), String::new()), "{report:?}");
    main.control().roll_back("b", None).await.unwrap();
    main.shutdown().await.unwrap();

    // `c` requires `b`, and waits until it is known what `b` runs.
    let third =
        [("a", "autostart = false\nrestart.policy = 'never'"), second[1], ("c", "requires = ['b@1']")];
    chain.configure(&third, UPDATE);
    // Else its kept version would serve.
    fs::remove_file(chain.path("state/weir-versions-a")).unwrap();
    chain.put_bad("a");
    let main = chain.start().await;
    let status = main.control().status("b").unwrap();
    assert_eq!(
        (status.state, status.version.map(|version| version.number)),
        (ExtensionState::Ready, Some(1))
    );
    assert_eq!((status.restarts, status.failures.len()), (0, 0), "{status:?}");
    assert_eq!(main.control().status("c").unwrap().state, ExtensionState::Ready);
    assert_eq!(main.control().status("c").unwrap().failures.len(), 0);
    // Without a version in its place, it waits for its requirement as ever.
    main.control().stop("b").await.unwrap();
    main.control().reload_extension_now("b").await.unwrap();
    let error = main.control().start("b").await.unwrap_err().to_string();
    assert_eq!(error, "`b` did not start: it requires `a@1`, and `a` does not run");
    main.shutdown().await.unwrap();
}
