//! A new version replaces the old one, or does not.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use weir_host::{
    Config, Error, ExtensionConfig, Main, MainConfig,
    config::{ComponentSource, ReloadMode, RestartPolicy, TrustedKey},
    control::{ControlError, ExtensionState},
    events::MainEvent,
};

use super::support::{Gate, config, puppet, puppet_with, reached, set, start, taken, tell, until};

pub(crate) struct Components(TempDir);

impl Components {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("a.wasm")
    }

    pub(crate) fn puppet(&self, change: impl FnOnce(&mut ExtensionConfig)) -> ExtensionConfig {
        self.put(1);
        let mut puppet = puppet_with("a", change);
        puppet.component = ComponentSource::Path(self.path());
        puppet
    }

    pub(crate) fn put(&self, version: u8) {
        let mut bytes = fs::read(test_guests::path("puppet")).unwrap();
        // A custom section named `v`.
        bytes.extend([0, 3, 1, b'v', version]);
        write(&self.path(), &bytes);
    }

    pub(crate) fn put_text(&self, text: &str) {
        write(&self.path(), &wat::parse_str(text).unwrap());
    }
}

/// As a package manager does: readers see the old file or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

pub(crate) fn hash(main: &Main) -> String {
    main.control().status("a").unwrap().hash.unwrap()
}

pub(crate) fn not_reloaded(reason: &str) -> Result<(), ControlError> {
    Err(ControlError::NotReloaded { id: "a".parse().unwrap(), reason: reason.to_owned() })
}

pub(crate) const TRAPS: &str = r#"(component
    (import "weir:iec/channel@0.1.0" (instance))
    (core module $m (func (export "run") (result i32) unreachable))
    (core instance $m (instantiate $m))
    (func $run (result (result)) (canon lift (core func $m "run")))
    (instance $run (export "run" (func $run)))
    (export "wasi:cli/run@0.2.12" (instance $run)))"#;

pub(crate) const BOTH: [ReloadMode; 2] = [ReloadMode::StopFirst, ReloadMode::Overlap];

#[tokio::test]
async fn a_new_component_takes_over_and_subscriptions_stay() {
    for mode in BOTH {
        let components = Components::new();
        let main = start(vec![components.puppet(|a| {
            a.reload = mode;
            a.subscribes = vec!["t".parse().unwrap()];
        })])
        .await;
        let number = tell(&main, "a", "subscribe t").await.unwrap();
        let old = hash(&main);
        components.put(2);
        main.control().reload_extension("a").await.unwrap();
        assert_ne!(hash(&main), old);
        assert_eq!(main.client().publish("t", "between").await.unwrap().delivered, 1);
        assert_eq!(tell(&main, "a", "subscribe t").await.unwrap(), number);
        taken(&main, "a").await;
        assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  1 0 between");
        let status = main.control().status("a").unwrap();
        assert_eq!((status.state, status.restarts, status.failures), (ExtensionState::Ready, 1, vec![]));
        assert!(status.memory > 0 && status.memory < 2 * 1024 * 1024, "{}", status.memory);
        assert_eq!(main.client().waiters(), 0);
    }
}

#[tokio::test]
async fn a_component_that_does_not_come_up_leaves_the_old_one_serving() {
    for mode in BOTH {
        let components = Components::new();
        let good = components.puppet(|a| {
            a.reload = mode;
            a.restart.policy = RestartPolicy::OnFailure;
            a.restart.failures = 2;
        });
        // Only one that is never ready takes that long.
        let mut hasty = good.clone();
        hasty.limits.ready_timeout = Duration::from_millis(500);
        let main = start(vec![good]).await;
        let old = hash(&main);
        let serves = match mode {
            ReloadMode::Overlap => "the version before serves on",
            _ => "the version before serves again",
        };
        let unreachable = "trapped: wasm `unreachable` instruction executed";
        for round in 0..3 {
            components.put_text(TRAPS);
            let reloaded = main.control().reload_extension("a").await;
            assert_eq!(reloaded, not_reloaded(&format!("{unreachable}; {serves}")));
            components.put_text(&TRAPS.replace("unreachable", "(loop (br 0)) i32.const 0"));
            let report = main.control().reload_with(config(vec![hasty.clone()])).await.unwrap();
            let late = format!("not ready within `ready-timeout` of 500ms; {serves}");
            assert_eq!(report.failed.into_iter().map(|failed| failed.reason).collect::<Vec<_>>(), [late]);
            components.put_text(&TRAPS.replace("unreachable", "i32.const 0"));
            let reloaded = main.control().reload_extension("a").await;
            assert_eq!(reloaded, not_reloaded(&format!("finished; {serves}")));
            write(&components.path(), b"\0asm\x0d\0\x01\0 and then nothing of sense");
            let reloaded = main.control().reload_extension("a").await.unwrap_err();
            assert!(reloaded.to_string().contains("` does not compile: "), "{reloaded}");
            fs::remove_file(components.path()).unwrap();
            let reloaded = main.control().reload_extension("a").await.unwrap_err();
            assert!(reloaded.to_string().contains("` cannot be read: "), "{reloaded}");

            assert_eq!((hash(&main), tell(&main, "a", "echo on").await), (old.clone(), Ok("on".to_owned())));
            // On record, but not counted: the extension itself has not failed.
            let status = main.control().status("a").unwrap();
            assert_eq!(
                (status.state, status.failures.len()),
                (ExtensionState::Ready, (5 * (round + 1)).min(16))
            );
        }
        // A restart after its own failure takes the version that served, not the file.
        components.put_text(TRAPS);
        let restarts = || main.control().status("a").unwrap().restarts;
        let before = restarts();
        assert_eq!(tell(&main, "a", "trap").await, Err("Trapped".to_owned()));
        // The answer comes before its end is known.
        until(|| restarts() > before).await;
        reached(&main, "a", ExtensionState::Ready).await;
        assert_eq!((hash(&main), tell(&main, "a", "echo on").await), (old, Ok("on".to_owned())));
    }
}

#[tokio::test]
async fn what_waits_while_an_extension_is_exchanged_is_served_in_order_by_the_next() {
    for mode in BOTH {
        let gate = Gate::new();
        let components = Components::new();
        let slow = components.puppet(|a| {
            a.reload = mode;
            a.wants = vec!["gate@1".parse().unwrap()];
        });
        let main = gate.start(vec![slow]).await;
        components.put(2);
        let in_hand = tell(&main, "a", "call gate@1 pass");
        let rest = async {
            while main.control().status("a").unwrap().received == 0 {
                tokio::task::yield_now().await;
            }
            let reload = main.control().reload_extension("a");
            let waiting = async {
                let commands: Vec<_> = (0..20).map(|number| format!("echo {number}")).collect();
                let told: Vec<_> = commands.iter().map(|command| tell(&main, "a", command)).collect();
                let opened = async {
                    // All are sent, and the old instance was told to stop.
                    match mode {
                        ReloadMode::Overlap => {
                            while main.control().status("a").unwrap().restarts == 0 {
                                tokio::task::yield_now().await;
                            }
                        }
                        _ => drop(reached(&main, "a", ExtensionState::Draining).await),
                    }
                    gate.open(1);
                };
                tokio::join!(futures_util::future::join_all(told), opened).0
            };
            tokio::join!(reload, waiting)
        };
        let (in_hand, (reloaded, told)) = tokio::join!(in_hand, rest);
        reloaded.unwrap();
        assert_eq!(in_hand, Ok(String::new()), "it finishes what it has in hand");
        let expected: Vec<_> = (0..20).map(|number| Ok(number.to_string())).collect();
        assert_eq!(told, expected);
        assert_eq!(main.client().waiters(), 0);
    }
}

#[tokio::test]
async fn a_stop_during_a_reload_ends_both_versions() {
    for mode in BOTH {
        let gate = Gate::new();
        let components = Components::new();
        let a = components.puppet(|a| {
            a.reload = mode;
            a.wants = vec!["gate@1".parse().unwrap()];
            set(a, "start", "call gate@1 pass");
        });
        gate.open(1);
        let main = gate.start(vec![a]).await;
        components.put(2);
        let control = main.control();
        let stop = async {
            while control.status("a").unwrap().restarts == 0 {
                tokio::task::yield_now().await;
            }
            let stopping = control.stop("a");
            let open = async {
                while matches!(
                    control.status("a").unwrap().state,
                    ExtensionState::Ready | ExtensionState::Starting
                ) {
                    tokio::task::yield_now().await;
                }
                gate.open(1);
            };
            tokio::join!(stopping, open).0
        };
        let (reloaded, stopped) = tokio::join!(control.reload_extension("a"), stop);
        assert_eq!((reloaded, stopped), (not_reloaded("it was stopped"), Ok(())), "{mode:?}");
        let status = control.status("a").unwrap();
        assert_eq!((status.state, status.memory), (ExtensionState::Stopped, 0));
        assert_eq!(
            main.client().call("a@1", "run", "echo").await,
            Err(Error::NoProvider("`a` is not running".to_owned()))
        );
        gate.open(1);
        control.start("a").await.unwrap();
        assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
    }
}

#[tokio::test]
async fn an_instance_that_dies_while_its_successor_starts_is_succeeded_at_once() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.reload = ReloadMode::Overlap;
        a.wants = vec!["gate@1".parse().unwrap()];
        a.restart.policy = RestartPolicy::OnFailure;
        set(a, "start", "call gate@1 pass");
    });
    gate.open(1);
    let main = gate.start(vec![a]).await;
    let old = hash(&main);
    components.put(2);
    let die = async {
        while main.control().status("a").unwrap().restarts == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tell(&main, "a", "trap").await, Err("Trapped".to_owned()));
        reached(&main, "a", ExtensionState::Starting).await;
        let asked = tell(&main, "a", "echo waited");
        let open = async { gate.open(1) };
        tokio::join!(asked, open).0
    };
    let (reloaded, asked) = tokio::join!(main.control().reload_extension("a"), die);
    assert_eq!((reloaded, asked), (Ok(()), Ok("waited".to_owned())));
    let status = main.control().status("a").unwrap();
    assert_eq!((status.restarts, status.failures.len()), (1, 1));
    assert_ne!(hash(&main), old);
}

#[tokio::test]
async fn one_that_does_not_run_is_not_started_by_a_reload_unless_it_has_failed() {
    let components = Components::new();
    let main = start(vec![components.puppet(|a| a.autostart = false)]).await;
    let control = main.control();
    control.reload_extension("a").await.unwrap();
    assert_eq!(control.status("a").unwrap().state, ExtensionState::Loaded);
    components.put_text(TRAPS);
    assert!(control.start("a").await.is_err());
    assert_eq!(control.status("a").unwrap().state, ExtensionState::Failed);
    let trapped = "trapped: wasm `unreachable` instruction executed";
    assert_eq!(control.reload_extension("a").await, not_reloaded(trapped));
    components.put(2);
    control.reload_extension("a").await.unwrap();
    assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
    assert!(matches!(control.reload_extension("b").await, Err(ControlError::Unknown(_))));
}

#[tokio::test]
async fn a_second_reload_of_the_same_is_refused_until_the_first_has_ended() {
    let gate = Gate::new();
    let slow = puppet_with("a", |a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "stop", "call gate@1 pass");
    });
    let main = gate.start(vec![slow]).await;
    let control = main.control();
    let second = async {
        reached(&main, "a", ExtensionState::Draining).await;
        let refused = control.reload_extension("a").await;
        gate.open(10);
        refused
    };
    let (first, second) = tokio::join!(control.reload_extension("a"), second);
    assert_eq!((first, second), (Ok(()), Err(ControlError::Reloading("`a`".to_owned()))));
    control.reload_extension("a").await.unwrap();
}

#[tokio::test]
async fn a_configuration_applies_what_changed_and_nothing_else() {
    let components = Components::new();
    let old = vec![puppet("same"), puppet("gone"), puppet("other"), components.puppet(|_| {})];
    let main = start(old).await;
    let control = main.control();
    let mut events = control.events();
    let old_hash = hash(&main);
    components.put(2);
    let mut same = puppet("same");
    same.restart.policy = RestartPolicy::Always;
    let other = puppet_with("other", |o| o.fulfills.push("gone@1".parse().unwrap()));
    let mut changed = config(vec![puppet("new"), other, components.puppet(|_| {}), same]);
    components.put(2);
    changed.main.blocking_threads += 1;
    changed.main.cache_dir = Some("/nowhere".into());
    changed.main.cache_size = Some(1);
    changed.main.trusted_keys.push(TrustedKey::from_bytes([7; 32]));
    let report = control.reload_with(changed).await.unwrap();
    let names =
        |ids: &[weir_host::names::ExtensionId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((names(&report.added), names(&report.removed)), (vec!["new".into()], vec!["gone".into()]));
    let mut exchanged = names(&report.changed);
    exchanged.sort();
    // The policy of `same` holds without a restart.
    assert_eq!((exchanged, report.failed), (vec!["a".to_owned(), "other".into(), "same".into()], vec![]));
    assert_eq!(report.needs_restart, ["blocking-threads", "cache-dir", "cache-size"]);
    assert_ne!(hash(&main), old_hash);

    let listed: Vec<_> = control.extensions().into_iter().map(|e| (e.id.to_string(), e.restarts)).collect();
    let expected = [("new", 0), ("other", 1), ("a", 1), ("same", 0)];
    assert_eq!(listed, expected.map(|(id, restarts)| (id.to_owned(), restarts)));
    for id in ["new", "other", "a", "same"] {
        assert_eq!(tell(&main, id, "echo on").await.unwrap(), "on");
    }
    // Another extension should fulfil it now, and does not serve it.
    assert!(matches!(main.client().call("gone@1", "run", "").await, Err(Error::Invalid(_))));
    assert!(matches!(control.stop("gone").await, Err(ControlError::Unknown(_))));
    let mut said = Vec::new();
    loop {
        match events.next().await.unwrap() {
            MainEvent::Reloading => said.push("reloading".to_owned()),
            MainEvent::Reloaded => break,
            MainEvent::State {
                extension, to: ExtensionState::Starting | ExtensionState::Stopped, ..
            } => {
                said.push(extension.to_string());
            }
            _ => {}
        }
    }
    // Removed first, then new, then changed.
    assert_eq!(&said[..3], ["reloading", "gone", "new"]);
    assert!(!said.contains(&"same".to_owned()), "{said:?}");

    // It comes back as new, with its failures.
    let back = config(vec![puppet("gone"), puppet("same")]);
    let report = control.reload_with(back).await.unwrap();
    assert_eq!((names(&report.added), report.removed.len()), (vec!["gone".into()], 3));
    assert_eq!(tell(&main, "gone", "echo back").await.unwrap(), "back");
    assert!(matches!(main.client().call("new@1", "run", "").await, Err(Error::UnknownContract(_))));
}

#[tokio::test]
async fn a_configuration_with_an_error_changes_nothing() {
    let main = start(vec![puppet("a")]).await;
    let control = main.control();
    let twice = config(vec![puppet("a"), puppet("a")]);
    let refused = control.reload_with(twice).await.unwrap_err();
    let ControlError::NotConfigured(reason) = &refused else { panic!("{refused:?}") };
    assert!(reason.contains("two extensions have the id `a`"), "{reason}");
    let mut main_config = MainConfig::default();
    main_config.serves = vec!["missing@1".parse().unwrap()];
    let refused = control.reload_with(Config::new(main_config, vec![puppet("b")])).await.unwrap_err();
    assert!(refused.to_string().contains("this program does not serve it"), "{refused}");
    assert_eq!(control.reload().await, Err(ControlError::NoFile));
    let status = control.status("a").unwrap();
    assert_eq!((status.state, status.restarts), (ExtensionState::Ready, 0));
}

#[tokio::test]
async fn a_file_is_read_again_and_a_line_that_moves_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(test_guests::path("puppet"), dir.path().join("puppet.wasm")).unwrap();
    let file = dir.path().join("weir.toml");
    let text = |limits: &str| {
        format!(
            "main.cache-dir = 'cache'\n[limits.own]\n{limits}[[extension]]\nid = 'a'\nclass = 'own'\npath = 'puppet.wasm'\nfulfills = ['a@1']\nconfig = {{ contract = 'a@1' }}\n"
        )
    };
    fs::write(&file, text("")).unwrap();
    let main = Main::builder(weir_host::load(&file).unwrap()).start().await.unwrap();
    let control = main.control();
    fs::write(&file, text("# a comment\n")).unwrap();
    let report = control.reload().await.unwrap();
    assert_eq!((report.changed, control.status("a").unwrap().restarts), (vec![], 0));
    assert!(dir.path().join("cache").exists());
    fs::write(&file, text("memory = '8 MiB'\n")).unwrap();
    let report = control.reload().await.unwrap();
    assert_eq!(report.changed.len(), 1, "{report:?}");
    assert_eq!(control.status("a").unwrap().memory_limit, 8 << 20);
    assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
    fs::write(&file, text("memory = 'eight'\n")).unwrap();
    let refused = control.reload().await.unwrap_err().to_string();
    assert!(
        refused.contains("weir.toml") && refused.contains("`limits.own.memory` must be a size"),
        "{refused}"
    );
    assert_eq!(control.status("a").unwrap().restarts, 1);
}

#[tokio::test]
async fn another_plugin_directory_takes_effect_with_the_reload() {
    let (before, after) = (Components::new(), Components::new());
    let configured = |components: &Components| {
        let mut config = config(vec![components.puppet(|_| {})]);
        config.main.plugin_dir = components.path().parent().map(ToOwned::to_owned);
        config
    };
    let main = Main::builder(configured(&before)).start().await.unwrap();
    let report = main.control().reload_with(configured(&after)).await.unwrap();
    assert_eq!(report.failed, vec![]);
    assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
}
