//! Hooks from extensions, through `hooks@1`.

use serde_json::{Value, json};
use weir_host::{
    Config, Error, ExtensionConfig, Main, MainConfig,
    hooks::{HookDirConfig, HooksConfig},
};

use super::support::*;

fn puppet(id: &str, runs: &[&str]) -> ExtensionConfig {
    let mut puppet = ExtensionConfig::new(id.parse().unwrap(), test_guests::path("puppet"));
    puppet.fulfills = vec![format!("{id}@1").parse().unwrap()];
    puppet.config.insert("contract".to_owned(), format!("{id}@1"));
    puppet.runs = runs.iter().map(|name| name.parse().unwrap()).collect();
    puppet.limits.ready_timeout = PATIENCE;
    puppet
}

fn with(extensions: Vec<ExtensionConfig>, hooks: &[(&str, HookDirConfig)]) -> Config {
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    let mut config = Config::new(main, extensions);
    let hooks = hooks.iter().map(|(name, dir)| (name.parse().unwrap(), dir.clone()));
    config.set_section(hooks.collect::<HooksConfig>());
    config
}

async fn tell(main: &Main, id: &str, command: String) -> Result<Value, Error> {
    let answer = main.client().call(&format!("{id}@1"), "run", command).await?;
    Ok(serde_json::from_slice(&answer).unwrap_or_else(|_| Value::String(text(&answer).to_owned())))
}

#[tokio::test]
async fn an_extension_runs_the_hooks_that_it_is_granted() {
    let files = dir(&["10-a"]);
    let extensions = vec![puppet("a", &["ready"]), puppet("b", &[]), puppet("c", &["other"])];
    let config = with(extensions, &[("ready", config(&files)), ("other", config(&files))]);
    let main = Main::builder(config).start().await.unwrap();
    let ask = json!({"hooks": "ready", "params": {"DO": "cat"}, "stdin": "hello"}).to_string();
    let report = tell(&main, "a", format!("call hooks@1 run {ask}")).await.unwrap();
    assert_eq!(report["outcome"], "ok");
    assert_eq!(report["hooks"][0]["stdout"], "hello");
    assert_eq!(tell(&main, "a", "call hooks@1 list {}".to_owned()).await.unwrap(), json!(["ready"]));
    let refused = tell(&main, "b", format!("call hooks@1 run {ask}")).await.unwrap_err().to_string();
    assert!(refused.contains("PermissionDenied"), "{refused}");
    let refused = tell(&main, "c", format!("call hooks@1 run {ask}")).await.unwrap_err().to_string();
    assert!(
        refused.contains("`c` may not run the hooks `ready`: its `runs` does not list them"),
        "{refused}"
    );
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn main_itself_runs_all_of_them_by_name() {
    let files = dir(&["10-a"]);
    let main = Main::builder(with(Vec::new(), &[("ready", config(&files))])).start().await.unwrap();
    let ask = async |payload: Value| {
        let answer = main.client().call("hooks@1", "run", payload.to_string()).await;
        answer
            .map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap())
            .map_err(|error| error.to_string())
    };
    let report = ask(json!({"hooks": "ready", "params": {"DO": "exit 7"}})).await.unwrap();
    assert_eq!((&report["outcome"], &report["hooks"][0]["code"]), (&json!("script-error"), &json!(7)));
    let timed_out =
        ask(json!({"hooks": "ready", "params": {"DO": "sleep 60"}, "timeout-ms": 2000})).await.unwrap();
    assert_eq!(timed_out["hooks"][0]["limit"]["name"], "call");
    let error = ask(json!({"hooks": "nothing"})).await.unwrap_err();
    assert!(error.contains("no hooks `nothing` are configured: add `[hooks.nothing]`"), "{error}");
    let error = ask(json!({"hooks": "ready", "parameters": {}})).await.unwrap_err();
    assert!(error.contains("unknown field `parameters`"), "{error}");
    let error = ask(json!({"hooks": "ready", "params": {"A=": "x"}})).await.unwrap_err();
    assert!(error.contains("cannot be a variable"), "{error}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_reload_adds_changes_and_removes_directories() {
    let files = dir(&["10-a"]);
    let main = Main::builder(with(Vec::new(), &[("a", config(&files)), ("b", config(&files))]))
        .start()
        .await
        .unwrap();
    let before = main.hooks().get("a").unwrap();
    let mut changed = config(&files);
    changed.grants.env.insert("DO".to_owned(), "exit 9".to_owned());
    main.control().reload_with(with(Vec::new(), &[("b", changed), ("c", config(&files))])).await.unwrap();
    let names: Vec<_> = main.hooks().names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["b", "c"]);
    let report = main.hooks().get("b").unwrap().run(Default::default()).await.unwrap();
    assert_eq!(report.outcome().word(), "script-error");
    assert!(run(&before, "ok").await.is_success(), "whoever holds one can go on");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_extension_cannot_change_what_the_operator_sets() {
    let files = dir(&["10-a"]);
    let mut config = config(&files);
    config.grants.env.insert("ROOT".to_owned(), "/safe".to_owned());
    let main =
        Main::builder(with(vec![puppet("a", &["ready"])], &[("ready", config)])).start().await.unwrap();
    for key in ["params", "env"] {
        let ask = json!({"hooks": "ready", key: {"ROOT": "/other"}}).to_string();
        let refused = tell(&main, "a", format!("call hooks@1 run {ask}")).await.unwrap_err().to_string();
        assert!(refused.contains("`ROOT` is set by the operator of the hooks"), "{refused}");
    }
    main.shutdown().await.unwrap();
}
