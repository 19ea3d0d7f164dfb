//! Which fields matter to a running instance.

use std::path::Path;

use toml::de::DeTable;
use weir_names::Policy;

use super::*;
use crate::{HttpGrant, RestartPolicy, tests::parse_in};

#[test]
fn an_instance_is_as_good_for_whoever_differs_in_what_it_does_not_see() {
    let a = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
    // Add a new field to one of the lists below.
    let ExtensionConfig {
        id: _,
        component: _,
        sha256: _,
        signature: _,
        signed_as: _,
        limits: _,
        fulfills: _,
        exports: _,
        imports: _,
        snake_case_imports: _,
        requires: _,
        wants: _,
        publishes: _,
        subscribes: _,
        puts: _,
        takes: _,
        runs: _,
        when_full: _,
        instances: _,
        per_call: _,
        grants: _,
        config: _,
        secrets: _,
        autostart: _,
        restart: _,
        ready: _,
        reload: _,
        update: _,
        serves_http: _,
        traces: _,
        validate: _,
        plugin_dir: _,
        copy_of: _,
        canary: _,
        stanza: _,
    } = &a;
    let runs_as_before = |change: fn(&mut ExtensionConfig)| {
        let mut changed = a.clone();
        change(&mut changed);
        assert_ne!(changed, a);
        changed.runs_as(&a)
    };
    let of_the_instance: [fn(&mut ExtensionConfig); 28] = [
        |it| it.id = "b".parse().unwrap(),
        |it| it.component = ComponentSource::Path("b".into()),
        |it| it.component = ComponentSource::Bytes(Bytes::from_static(b"b")),
        |it| it.sha256 = Some(ArtifactHash::from_bytes([1; 32])),
        |it| it.signed_as = Some("b".parse().unwrap()),
        |it| it.limits.log_rate += 1,
        |it| it.fulfills.push("a@1".parse().unwrap()),
        |it| drop(it.exports.insert("a@1".parse().unwrap(), "*".parse().unwrap())),
        |it| drop(it.imports.insert("a:b/c".parse().unwrap(), "a@1".parse().unwrap())),
        |it| it.snake_case_imports.push("a:b/c".parse().unwrap()),
        |it| it.per_call = true,
        |it| it.requires.push("a@1".parse().unwrap()),
        |it| it.wants.push("a@1".parse().unwrap()),
        |it| it.publishes.push("t".parse().unwrap()),
        |it| it.subscribes.push("t".parse().unwrap()),
        |it| it.puts.push("q".parse().unwrap()),
        |it| it.takes.push("q".parse().unwrap()),
        |it| it.runs.push("h".parse().unwrap()),
        |it| it.when_full = RequestPolicy::Block,
        |it| it.instances = 2,
        |it| it.serves_http = Some(ServesHttp::default()),
        |it| it.traces = Traces::Lines,
        |it| it.validate = Validate::Requests,
        |it| it.grants.net.push("[::1]:80".parse().unwrap()),
        |it| it.ready = ReadyWhen::AtStart,
        |it| it.grants.http.push(HttpGrant::new("http://[::1]".parse().unwrap())),
        |it| drop(it.config.insert("a".to_owned(), "b".to_owned())),
        |it| drop(it.secrets.insert("a".to_owned(), SecretSource::File("b".into()))),
    ];
    assert_eq!(of_the_instance.map(runs_as_before), [false; 28]);
    let subscribing = ExtensionConfig { subscribes: vec!["t".parse().unwrap()], ..a.clone() };
    let mut changed = subscribing.clone();
    changed.subscribes[0].policy = Policy::Latest;
    assert!(!changed.runs_as(&subscribing));
    let of_the_supervisor: [fn(&mut ExtensionConfig); 9] = [
        |it| it.signature = Some("".into()),
        |it| it.plugin_dir = Some(PathBuf::new()),
        |it| it.canary = Some(it.id.copy(2)),
        |it| it.limits.compile_memory += 1,
        |it| it.autostart = false,
        |it| it.restart.policy = RestartPolicy::Never,
        |it| it.reload = ReloadMode::Overlap,
        |it| it.update = Some(UpdateConfig::default()),
        |it| it.stanza = Some(Stanza::of_extension(&DeTable::new(), Path::new(""), None).into()),
    ];
    assert_eq!(of_the_supervisor.map(runs_as_before), [true; 9]);
}

#[test]
fn an_instance_is_as_good_wherever_the_same_limits_come_from() {
    let parsed = |text: &str| parse_in(text, Path::new("/")).unwrap().extensions.remove(0);
    let text = "[limits.small]\nmemory = '8 MiB'\n[[extension]]\nid = 'a'\npath = 'a.wasm'\n";
    let of_class = parsed(&format!("{text}class = 'small'"));
    let moved = parsed(&format!("# A comment.\n{text}class = 'small'"));
    let own = parsed(&format!("{text}limits.memory = '8 MiB'"));
    let mut made = ExtensionConfig::new("a".parse().unwrap(), "/a.wasm");
    made.limits.memory = 8 << 20;
    for other in [moved, own, made] {
        assert!(other != of_class && other.runs_as(&of_class), "{other:?}");
    }
    let other_class = parsed("[[extension]]\nid = 'a'\npath = 'a.wasm'\nclass = 'min'");
    assert!(!other_class.runs_as(&of_class));
}
