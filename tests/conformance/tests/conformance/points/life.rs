//! How the guest starts, stops, fails and waits.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_host::{Error, control::ExtensionState, logs::Level};

use crate::{
    language::Language,
    stage::{GUEST, Stage, guest, restart, text, until},
};

pub(super) async fn start_and_log(language: &Language) {
    let stage = Stage::new(language).await;
    for (level, told) in
        [("debug", Level::Debug), ("info", Level::Info), ("warn", Level::Warn), ("error", Level::Error)]
    {
        assert_eq!(stage.told("log", &format!("{level} said at {level}")).await, "ok");
        let field = ("from".to_owned(), GUEST.to_owned());
        let lines = stage.main.control().logs();
        let line = lines.iter().find(|line| line.message == format!("said at {level}")).unwrap();
        assert!(line.level == told && line.fields.contains(&field), "{line:?}");
    }
    let lines = stage.main.control().logs();
    let line = lines.iter().find(|line| line.message == "conformance is ready").unwrap();
    assert!(line.level == Level::Info && line.fields.iter().any(|(name, _)| name == "language"), "{line:?}");
}

pub(super) async fn failed_start(language: &Language) {
    let stage = Stage::with(language, |config| {
        guest(config).config.insert("start".to_owned(), "fail".to_owned());
    })
    .await;
    let reason = stage.reached(ExtensionState::Failed).await.unwrap_or_default();
    assert!(reason.contains("asked to fail"), "{reason}");
}

pub(super) async fn stop_with_a_request_in_hand(language: &Language) {
    let mut stage = Stage::new(language).await;
    let control = stage.main.control().clone();
    let asked = async { stage.calls("tester@1 pass - 0 finished").await };
    let stop = async {
        stage.gate.arrived(1).await;
        let stop = control.stop(GUEST);
        let open = async {
            stage.reached(ExtensionState::Draining).await;
            stage.gate.open(1);
        };
        tokio::join!(stop, open).0.unwrap();
    };
    let (asked, ()) = tokio::join!(asked, stop);
    assert_eq!(asked, "ok finished");
    assert_eq!(stage.heard("stopped").await, "bye");
    let status = stage.main.control().status(GUEST).unwrap();
    assert_eq!((status.state, status.failures.len()), (ExtensionState::Stopped, 0));
}

pub(super) async fn interrupted_and_ready(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("interrupt", "out of paper").await, "ok");
    match stage.ask("echo", "x").await {
        Err(Error::NotReady(text)) if text.contains("out of paper") => {}
        other => panic!("{other:?}"),
    }
    stage.reached(ExtensionState::Interrupted).await;
    stage.put("conformance-jobs", "ready").await;
    stage.reached(ExtensionState::Ready).await;
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn unhandled_exception(language: &Language) {
    let stage = Stage::with(language, restart).await;
    match stage.ask("break", "").await {
        Err(Error::Trapped) => {
            until(|| !stage.main.control().status(GUEST).unwrap().failures.is_empty()).await
        }
        Err(Error::Handler(error)) if error.code == "unexpected" => {
            assert!(!error.message.contains("cheese"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let account = stage.account();
    assert!(account.contains("out of cheese"), "{account}");
    let letters: String = account.to_lowercase().replace('_', "");
    assert!(letters.contains("failunexpectedly"), "{account}");
    stage.reached(ExtensionState::Ready).await;
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn endless_handler(language: &Language) {
    let stage = Stage::with(language, |config| {
        restart(config);
        guest(config).limits.fuel_per_message = 300_000_000;
    })
    .await;
    assert_eq!(stage.ask("spin", "").await, Err(Error::Trapped));
    until(|| !stage.main.control().status(GUEST).unwrap().failures.is_empty()).await;
    let failure = stage.main.control().status(GUEST).unwrap().failures.remove(0);
    assert_eq!(failure.cause, "`fuel-per-message` of 300000000 used up");
    stage.reached(ExtensionState::Ready).await;
    assert_eq!(stage.told("echo", "on").await, "on");
}

/// One that is too deep never leaves other data than it found.
pub(super) async fn deep_recursion(language: &Language) {
    let stage = Stage::with(language, restart).await;
    assert!(goes_on_after(&stage, 1).await);
    let (mut answered, mut too_many) = (1, 2);
    while goes_on_after(&stage, too_many).await {
        (answered, too_many) = (too_many, too_many * 2);
    }
    while too_many - answered > 1 {
        let levels = answered.midpoint(too_many);
        let half = if goes_on_after(&stage, levels).await { &mut answered } else { &mut too_many };
        *half = levels;
    }
}

/// Whether the guest answers. If not, it fails as it does at an exception.
async fn goes_on_after(stage: &Stage, levels: u64) -> bool {
    let answer = stage.ask("recurse", levels.to_string()).await;
    match answer {
        Ok(answer) => {
            assert_eq!(text(answer), "ok", "{levels} levels");
            return true;
        }
        Err(Error::Trapped | Error::PeerGone) => {}
        Err(Error::Handler(error)) if error.code == "unexpected" => {}
        other => panic!("{levels} levels: {other:?}"),
    }
    // It may start again before that.
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    while stage.ask("echo", "on").await != Ok("on".into()) {
        tick.tick().await;
    }
    false
}

pub(super) async fn idle_costs_nothing(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("echo", "on").await, "on");
    // Idle pool threads end after 10 s; each end wakes the worker.
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    while threads("weir-blocking").next().is_some() {
        tick.tick().await;
    }
    let workers: Vec<_> = threads("weir-main").collect();
    let [worker] = &workers[..] else { panic!("{} Mains", workers.len()) };
    let before = activity(worker);
    // Not a wait for anything: the time over which nothing may happen.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(activity(worker), before);
    assert_eq!(stage.told("echo", "on").await, "on");
}

fn threads(name: &'static str) -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    tasks.filter(move |task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
}

/// Context switches and ticks of processor time of a thread.
fn activity(task: &Path) -> Vec<String> {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let stat = fs::read_to_string(task.join("stat")).unwrap();
    let switches = status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned);
    // `utime` and `stime`, the 14th and 15th field.
    switches.chain(stat.split(' ').skip(13).take(2).map(str::to_owned)).collect()
}
