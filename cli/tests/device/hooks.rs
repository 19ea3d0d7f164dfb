//! Hooks: commands that run to their end.

use std::fs;

use super::support::{configure, configured, done, put, weir};

const HOOKS: &str = r#"
[hooks.node]
dir = "hooks.d"
timeout = "5m"
total-timeout = "10m"
"#;

#[test]
fn hooks_run_one_after_another_until_one_fails() {
    let dir = configured("");
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    for name in ["10-well.wasm", "20-warns.wasm", "30-fails.wasm", "40-is-left-out.wasm"] {
        put(dir.path(), "hook", &format!("hooks.d/{name}"));
    }
    configure(dir.path(), HOOKS);
    let run = |params: &[&str]| {
        let arguments = ["hooks", "run", "node", "--config", "weir.toml", "--json"];
        done(weir(dir.path()).args(arguments).args(params))
    };
    let ran = run(&["--param", "DO_20=exit 33", "--param", "DO_30=fail"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let outcome =
        |run: &serde_json::Value| (run["hook"].as_str().unwrap().to_owned(), run["outcome"].clone());
    let hooks: Vec<_> = report["hooks"].as_array().unwrap().iter().map(outcome).collect();
    let names: Vec<_> = hooks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["10-well.wasm", "20-warns.wasm", "30-fails.wasm"], "{report}");
    assert_eq!((hooks[0].1.as_str(), hooks[1].1.as_str()), (Some("ok"), Some("warning")), "{report}");
    let ran = run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
}
