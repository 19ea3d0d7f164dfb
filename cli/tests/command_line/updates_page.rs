//! The commands of `docs/updates.md`, as they stand there.

use std::{fs, process::Command};

use super::support::{Running, places, weir};

/// The block of the page that follows this name in a comment.
fn shown(name: &str) -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/updates.md")).unwrap();
    let (_, block) = page.split_once(&format!("<!-- {name} -->\n```")).unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    block.split_once("\n```").unwrap().0.to_owned() + "\n"
}

#[test]
fn a_bad_update_and_its_end_in_six_commands() {
    let clone = tempfile::tempdir().unwrap();
    let plugins = clone.path().join("target/plugins");
    fs::create_dir_all(&plugins).unwrap();
    for plugin in ["echo", "echo-raw", "storage"] {
        fs::copy(test_guests::path(plugin), plugins.join(plugin).with_extension("wasm")).unwrap();
    }
    let weirs = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", weirs.display());
    let dir = clone.path().join("target/updates");
    let run = |block: &str, dir: &std::path::Path| {
        let script = format!("{}\n{block}", shown("socket"));
        let mut shell = Command::new("sh");
        let shell = shell.args(["-ec", &script]).env_clear().env("PATH", &path).current_dir(dir);
        let output = shell.output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code(), text)
    };
    let prepare = shown("prepare").replace("cargo xtask plugins\n", "");
    assert_eq!(run(&prepare, clone.path()), (Some(0), String::new()));
    fs::write(dir.join("weir.toml"), shown("weir.toml")).unwrap();
    let mut command = weir(&dir);
    command.args(["run", "weir.toml"]).envs(places(&dir));
    let mut main = Running::spawn(clone, command);
    main.until("extensions are ready");

    let steps = [
        ("accept", 0, "runs version 1 (proven)"),
        ("bad", 0, ""),
        ("reload", 8, "the version before serves again"),
        ("versions", 0, "refused"),
        ("another", 0, "runs version 3 (probation)"),
        ("rollback", 0, "runs version 1 (held back)"),
        ("now", 0, "runs version 3 (proven)"),
        ("history", 0, "version 3 is proven"),
    ];
    for (name, code, said) in steps {
        let (ended, text) = run(&shown(name), &dir);
        assert_eq!(ended, Some(code), "{name}: {text}");
        assert!(text.contains(said), "{name}: {text}");
    }
}
