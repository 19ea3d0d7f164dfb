//! Extensions that are added, changed and removed one by one while Main runs.

use std::fs;

use futures_util::FutureExt;
use weir_host::{
    Error, ExtensionConfig, Main,
    config::{ComponentSource, QueueConfig, ReloadMode, RestartPolicy},
    control::{ControlError, ExtensionState},
};

use super::support::{Gate, PATIENCE, config, extension, puppet, puppet_with, set, start, tell};

fn ids(extensions: &[ExtensionConfig]) -> Vec<&str> {
    extensions.iter().map(|extension| extension.id.as_str()).collect()
}

#[tokio::test]
async fn an_extension_is_added_changed_and_removed_while_the_others_serve() {
    let main = start(vec![puppet("old")]).await;
    let control = main.control();
    let mut changes = puppet("new");
    control.add(changes.clone()).await.unwrap();
    assert_eq!(tell(&main, "new", "echo 1").await.unwrap(), "1");
    let again = control.add(changes.clone()).await.unwrap_err();
    assert_eq!(
        again.to_string(),
        "the configuration was not changed: `new` is configured already: update it, or choose another id"
    );

    changes.config.insert("size".to_owned(), "7".to_owned());
    changes.instances = 2;
    control.update(changes.clone()).await.unwrap();
    assert_eq!(tell(&main, "new", "config size").await.unwrap(), "7");
    let kept_to = control.configuration();
    assert_eq!(ids(&kept_to.extensions), ["old", "new"]);
    assert_eq!((kept_to.extensions[1].instances, &kept_to.extensions[1].config), (2, &changes.config));

    control.remove("new").await.unwrap();
    assert_eq!(ids(&control.configuration().extensions), ["old"]);
    let gone = main.client().call("new@1", "run", "echo").await;
    assert!(matches!(gone, Err(Error::UnknownContract(_))), "{gone:?}");
    for refused in [control.remove("new").await, control.update(changes).await] {
        assert!(matches!(refused, Err(ControlError::Unknown(_))), "{refused:?}");
    }
    assert_eq!(control.status("old").unwrap().restarts, 0);
}

#[tokio::test]
async fn a_change_leaves_the_others_alone_and_starts_what_has_failed() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("other.wasm");
    fs::copy(test_guests::path("puppet"), &path).unwrap();
    let other = puppet_with("other", |it| it.component = ComponentSource::Path(path.clone()));
    let main = start(vec![other]).await;
    let control = main.control();
    // A reload of the configuration would load this.
    fs::write(&path, "no component").unwrap();
    let mut new = puppet_with("new", |it| it.instances = 3);
    let good = std::mem::replace(&mut new.component, ComponentSource::Bytes(b"bad".as_slice().into()));
    for _ in 0..2 {
        assert!(matches!(control.put(new.clone()).await, Err(ControlError::NotStarted { .. })));
        assert_eq!(control.status("new").unwrap().state, ExtensionState::Failed);
        // It is configured all the same.
        let kept_to = control.configuration();
        let known = kept_to.extensions.iter().find(|it| it.id == new.id).unwrap();
        assert_eq!((known.instances, &known.config), (3, &new.config));
        new.config.insert("try".to_owned(), "again".to_owned());
    }
    new.component = good;
    control.put(new.clone()).await.unwrap();
    for id in ["new", "new.2", "new.3"] {
        assert_eq!(control.status(id).unwrap().state, ExtensionState::Ready, "{id}");
    }
    new.reload = ReloadMode::Overlap;
    new.component = ComponentSource::Bytes(b"bad".as_slice().into());
    assert!(matches!(control.put(new).await, Err(ControlError::NotReloaded { .. })));
    control.remove("new").await.unwrap();
    let status = control.status("other").unwrap();
    assert_eq!((status.state, status.restarts, status.failures.len()), (ExtensionState::Ready, 0, 0));
}

#[tokio::test]
async fn changes_at_once_wait_for_each_other() {
    let main = start(vec![puppet("a")]).await;
    let control = main.control();
    let again = puppet_with("a", |a| a.restart.policy = RestartPolicy::Always);
    let (b, c, a, reload) = tokio::join!(
        control.add(puppet("b")),
        control.add(puppet("c")),
        control.update(again),
        control.reload_with(control.configuration()),
    );
    for changed in [b, c, a] {
        changed.unwrap();
    }
    // The reload of a whole configuration does not wait, because it would undo changes that its asker does not know.
    assert!(matches!(reload, Err(ControlError::Reloading(_))), "{reload:?}");
    let kept_to = control.configuration();
    assert_eq!(ids(&kept_to.extensions), ["a", "b", "c"]);
    assert_eq!(kept_to.extensions[0].restart.policy, RestartPolicy::Always);
    assert_eq!(tell(&main, "c", "echo 1").await.unwrap(), "1");
    let (first, second) = tokio::join!(control.put(puppet("d")), control.put(puppet("d")));
    for put in [first, second, control.remove("d").await] {
        put.unwrap();
    }
    let (b, c) = tokio::join!(control.remove("b"), control.remove("c"));
    for removed in [b, c] {
        removed.unwrap();
    }
    assert_eq!(ids(&control.configuration().extensions), ["a"]);
}

#[tokio::test]
async fn a_change_that_fails_says_why_and_costs_nothing() {
    let needs = puppet_with("needs", |it| it.requires = vec!["a@1".parse().unwrap()]);
    let gate = Gate::new();
    let main = gate.start(vec![puppet("a"), needs]).await;
    let control = main.control();
    let required = control.remove("a").await.unwrap_err();
    assert!(matches!(&required, ControlError::NotConfigured(why) if why.contains("a@1")), "{required}");

    let mut broken = extension("broken", "puppet");
    broken.component = ComponentSource::Bytes(b"no component".as_slice().into());
    let failed = control.add(broken).await.unwrap_err();
    assert!(
        matches!(&failed, ControlError::NotStarted { id, reason } if id.as_str() == "broken" && reason.contains("component")),
        "{failed}"
    );
    assert_eq!(control.status("broken").unwrap().state, ExtensionState::Failed);
    control.remove("broken").await.unwrap();

    let mut worse = puppet("a");
    worse.component = ComponentSource::Bytes(b"no component".as_slice().into());
    let failed = control.update(worse).await.unwrap_err();
    assert!(matches!(&failed, ControlError::NotReloaded { .. }), "{failed}");
    assert_eq!(tell(&main, "a", "echo still").await.unwrap(), "still");
    let unfit = control.add(puppet_with("b", |b| b.limits.memory = 1)).await.unwrap_err();
    assert!(matches!(&unfit, ControlError::NotConfigured(why) if why.contains("memory")), "{unfit}");
    assert_eq!(ids(&control.configuration().extensions), ["a", "needs"]);

    // Whoever gives up a change that has not begun leaves all as it was.
    let slow = puppet_with("b", |b| {
        b.wants = vec!["gate@1".parse().unwrap()];
        set(b, "start", "call gate@1 pass");
    });
    let (first, _) = tokio::join!(control.add(slow), async {
        assert!(control.add(puppet("c")).now_or_never().is_none());
        gate.open(1);
    });
    first.unwrap();
    assert_eq!(ids(&control.configuration().extensions), ["a", "needs", "b"]);
    let gone = control.remove("c").await;
    assert!(matches!(gone, Err(ControlError::Unknown(_))), "{gone:?}");
    tokio::time::timeout(PATIENCE, main.shutdown()).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_removed_long_ago_is_only_a_name_and_can_come_anew() {
    let mut config = config(vec![puppet("stays")]);
    config.queues.insert("q".parse().unwrap(), QueueConfig::default());
    let main = Main::builder(config).start().await.unwrap();
    let control = main.control();
    let first = puppet_with("first", |it| {
        it.puts = vec!["q".parse().unwrap()];
        it.instances = 2;
    });
    control.add(first.clone()).await.unwrap();
    tell(&main, "first", "put q x").await.unwrap();
    control.remove("first").await.unwrap();
    // An extension that comes back soon goes on with what is known of it.
    control.add(first.clone()).await.unwrap();
    assert_eq!(control.status("first").unwrap().restarts, 1);
    control.remove("first").await.unwrap();
    for number in 0..20 {
        let id = format!("e{number}");
        control.add(puppet(&id)).await.unwrap();
        control.remove(&id).await.unwrap();
    }
    let gone = main.client().call("first@1", "run", "echo").await;
    assert!(matches!(gone, Err(Error::UnknownContract(_))), "{gone:?}");
    let mut queue = main.client().queue("q").unwrap();
    let sender = queue.try_take().unwrap().sender();
    assert!(["first", "first.2"].contains(&&*sender), "{sender}");
    control.add(first).await.unwrap();
    assert_eq!(tell(&main, "first", "echo 1").await.unwrap(), "1");
    let known: Vec<_> = control.extensions().into_iter().map(|it| (it.id.to_string(), it.restarts)).collect();
    assert_eq!(known, [("stays", 0), ("first", 0), ("first.2", 0)].map(|(id, n)| (id.to_owned(), n)));
}
