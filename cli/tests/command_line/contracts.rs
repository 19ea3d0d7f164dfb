//! `weir describe`, `check-contract`, and the checks of `weir call` and `weir check`.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use super::support::{Done, Running, assert_golden, done, weir};

/// `puppet@1`, as far as its caller may know it.
const PUPPET: &str = r##"{"openrpc":"1.3.2","info":{"title":"puppet@1","version":"1","description":"Does as it is told."},"methods":[{"name":"puppet@1/run","description":"Does this.","paramStructure":"by-name","x-arguments":"Order","params":[{"name":"command","description":"What to do.","required":true,"schema":{"type":"string"}},{"name":"times","schema":{"type":["integer","null"],"format":"uint8","minimum":0}}],"result":{"name":"Done","schema":{"$ref":"#/components/schemas/Done"}},"errors":[{"code":-32010,"message":"refused","data":"It does not want to."}]}],"x-topics":[{"name":"told.>","payload":true}],"components":{"schemas":{"Done":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}}}}"##;

const EXTENSIONS: &str = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]

[[extension]]
id = "player"
path = "player.wasm"
fulfills = ["player@1"]
requires = ["puppet@1"]
config.contract = "player@1"
"#;

/// A caller that expects another operation, another argument and a further field.
fn caller() -> String {
    let run = PUPPET
        .replacen("\"methods\"", "\"x-role\":\"caller\",\"methods\"", 1)
        .replace("\"command\"", "\"comand\"")
        .replace("[\"answer\"]", "[\"answer\",\"seconds\"]")
        .replace("\"answer\":{", "\"seconds\":{\"type\":\"integer\"},\"answer\":{");
    let stop = r#""methods":[{"name":"puppet@1/stop","params":[],"result":{"name":"null","schema":{"type":"null"}}},"#;
    run.replacen("\"methods\":[", stop, 1)
}

/// A puppet that describes itself like this.
fn describing(document: &str) -> Vec<u8> {
    let mut component = fs::read(test_guests::path("puppet")).unwrap();
    let name = b"weir:contracts";
    let [name_length, length] = [name.len(), 1 + name.len() + document.len()];
    // LEB128 in two bytes: enough for 16,383.
    component
        .extend([0, length % 128 + 128, length / 128, name_length].map(|byte| u8::try_from(byte).unwrap()));
    component.extend(name.iter().chain(document.as_bytes()));
    component
}

/// Both extensions, with a cache so that each is compiled once.
fn described() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("weir.toml"), EXTENSIONS).unwrap();
    fs::write(dir.path().join("puppet.wasm"), describing(PUPPET)).unwrap();
    fs::write(dir.path().join("player.wasm"), describing(&caller())).unwrap();
    dir
}

fn alone(dir: &Path, args: &[&str]) -> Done {
    done(weir(dir).args(args))
}

#[test]
fn what_runs_is_described_like_its_component() {
    let main = Running::start(described());
    let all = main.weir(&["describe"]).good();
    assert_golden("describe-main", &all);
    assert_eq!(main.weir(&["describe", "puppet@1"]).good(), all);
    let file = main.weir(&["describe", "puppet.wasm"]).good();
    assert_eq!(all.replace(", served by `puppet`", ""), file);
    let openrpc = main.weir(&["describe", "--openrpc", "puppet@1"]).good();
    assert_eq!(main.weir(&["describe", "--openrpc", "puppet.wasm"]).good(), openrpc);
    fs::write(main.path().join("puppet.json"), &openrpc).unwrap();
    assert_eq!(main.weir(&["describe", "puppet.json"]).good(), file);
    assert_golden("describe-markdown", &main.weir(&["describe", "--markdown", "puppet.json"]).good());
    let document: Value = serde_json::from_str(&openrpc).unwrap();
    assert_eq!(document["methods"][0]["name"], "puppet@1/run");
}

#[test]
fn what_nobody_describes_is_said_to_be_so() {
    let main = Running::start(described());
    let cases: [(&[&str], i32, &str); 5] = [
        (&["describe", "player@1"], 4, "error: nothing that runs describes `player@1`\n"),
        (&["describe", "absent.wasm"], 1, "`absent.wasm` cannot be"),
        (&["describe", "empty.json"], 1, "error: `empty.json` describes no contract\n"),
        (&["describe", "broken.json"], 1, "`broken.json` describes no contract: `$`: has no `openrpc`"),
        (&["describe", "second.json"], 1, "document 1: `$`: must be an object, and is a number"),
    ];
    fs::write(main.path().join("empty.json"), "[]").unwrap();
    fs::write(main.path().join("broken.json"), "{}").unwrap();
    fs::write(main.path().join("second.json"), format!("[{PUPPET}, 5]")).unwrap();
    for (args, code, message) in cases {
        let refused = main.weir(args);
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_found_before_they_are_sent() {
    let main = Running::start(described());
    let call = |args: &[&str]| main.weir(&[&["call", "puppet@1", "run"], args].concat());
    let received = || main.json(&["status", "--json", "puppet"])["received"].clone();
    let before = received();
    let misfits: [(&[&str], &str); 6] = [
        (&[], "`$` has no `command`"),
        (&["{\"comand\":\"echo\"}"], "`$.comand` is unknown: did you mean `command`?"),
        (&["{\"command\":\"echo\",\"tmies\":2}"], "`$.tmies` is unknown: did you mean `times`?"),
        (&["{\"command\":5}"], "`$.command` must be a string, and is a number"),
        (&["{\"command\":\"echo\",\"times\":256}"], "`$.times` must be at most 255, and is 256"),
        (&["@payload"], "`$` is not JSON: expected value at line 1 column 1"),
    ];
    fs::write(main.path().join("payload"), "echo").unwrap();
    for (args, misfit) in misfits {
        let refused = call(args);
        let advice = "`--no-check` sends them all the same";
        assert_eq!(refused.stderr, format!("error: the arguments do not fit: {misfit}; {advice}\n"));
        assert_eq!(refused.code, 2);
    }
    let unknown = main.weir(&["call", "puppet@1", "rnu", "{}"]);
    let expected =
        "error: `puppet@1` has no operation `rnu`; it has `run`; `--no-check` sends them all the same\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (2, expected));
    // What may take long is checked beside the worker thread.
    let long = format!("{{\"command\":\"{}\",\"tmies\":2}}", "echo ".repeat(2000));
    let refused = call(&["--trace", &long]);
    let misfit = "`$.tmies` is unknown: did you mean `times`?; `--no-check` sends them all the same";
    assert_eq!(refused.stderr, format!("error: the arguments do not fit: {misfit}\n"));
    assert_eq!(received(), before);

    // The puppet itself takes a line.
    assert_eq!(call(&["--raw", "echo {}"]).good(), "{}");
    assert_eq!(call(&["--no-check", "@payload"]).code, 0);
    assert_ne!(call(&["{\"command\":\"echo\",\"times\":2}"]).code, 2);
    // Of another provider, nothing is known.
    assert_eq!(call(&["--provider", "player", "{\"comand\":1}"]).code, 8);
}

#[test]
fn an_extension_that_calls_otherwise_than_its_provider_describes_is_a_warning() {
    let dir = described();
    let checked = alone(dir.path(), &["check", "weir.toml"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "`puppet` is ok\n`player` is ok\n"));
    assert_golden("check-contracts", &checked.stderr);
    let json = alone(dir.path(), &["check", "--json", "weir.toml"]).good();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["warnings"].as_array().unwrap().len(), checked.stderr.lines().count());
    assert!(json["warnings"][0]["message"].as_str().unwrap().starts_with("`player` calls `puppet@1`"));

    fs::write(dir.path().join("player.wasm"), describing(&PUPPET.replace("provider", "caller"))).unwrap();
    assert_eq!(alone(dir.path(), &["check", "weir.toml"]).stderr, "");
}

#[test]
fn a_version_that_breaks_callers_is_not_compatible() {
    let dir = described();
    let required = r#"{"name":"owner","required":true,"schema":{"type":"string"}},{"name":"times""#;
    let breaking = PUPPET.replace("{\"name\":\"times\"", required);
    let added = r#""properties":{"seconds":{"type":"integer"},"answer""#;
    let compatible = PUPPET.replace("\"properties\":{\"answer\"", added);
    fs::write(dir.path().join("breaking.json"), &breaking).unwrap();
    fs::write(dir.path().join("compatible.wasm"), describing(&compatible)).unwrap();
    fs::write(dir.path().join("other.json"), PUPPET.replace("puppet@1", "puppet@2")).unwrap();

    let check = |args: &[&str]| alone(dir.path(), &[&["check-contract"], args].concat());
    let broken = check(&["puppet.wasm", "breaking.json"]);
    assert_eq!((broken.code, broken.stderr.as_str()), (1, ""));
    assert_golden("check-contract-breaking", &broken.stdout);
    assert_golden("check-contract-compatible", &check(&["puppet.wasm", "compatible.wasm"]).good());
    assert_eq!(check(&["puppet.wasm", "puppet.wasm"]).good(), "`puppet@1` is compatible\n");
    assert_eq!(check(&["puppet.wasm", "other.json"]).code, 1);
    let json = check(&["--json", "puppet.wasm", "breaking.json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["compatible"], false);
    let finding = &json["contracts"][0]["findings"][0];
    assert_eq!(finding["path"], "$.operations.run.arguments.owner");
    assert_eq!(
        (finding["severity"].as_str(), json["contracts"][0]["contract"].as_str()),
        (Some("breaking"), Some("puppet@1"))
    );

    let none = check(&["player.wasm", "puppet.wasm"]);
    let expected = "error: `player.wasm` describes no contract that it serves\n";
    assert_eq!((none.code, none.stderr.as_str()), (1, expected));
}
