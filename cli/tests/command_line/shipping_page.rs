//! The commands of `docs/shipping.md`, as they stand there.

use std::{fs, path::Path, process::Command};

use super::support::{Running, done, own_cache, places, weir};

/// The block of the page that follows this name in a comment, without its indent.
fn shown(name: &str) -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/shipping.md")).unwrap();
    let (_, block) = page.split_once(&format!("<!-- {name} -->\n   ```")).unwrap();
    let (block, _) = block.split_once('\n').unwrap().1.split_once("   ```").unwrap();
    block.lines().map(|line| format!("{}\n", line.strip_prefix("   ").unwrap_or(line))).collect()
}

/// Runs a command of the page. Returns what it says.
fn run(line: &str, dir: &Path) -> String {
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(words[0], "weir", "{line}");
    let ended = done(weir(dir).args(&words[1..]));
    assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn an_extension_goes_from_its_author_to_a_device_in_eight_commands() {
    let author = tempfile::tempdir().unwrap();
    let device = tempfile::tempdir().unwrap();
    own_cache(device.path());
    let project = author.path().join("echo");
    let (mut commands, mut trusted) = (0, String::new());
    for line in shown("author").lines() {
        match line {
            "cd echo" => {}
            // Cargo would need a network: what it makes is put in its place.
            "weir build" => {
                commands += 1;
                let built = project.join("target/wasm32-wasip2/release");
                fs::create_dir_all(&built).unwrap();
                fs::copy(test_guests::path("echo"), built.join("echo.wasm")).unwrap();
                fs::write(project.join("Cargo.lock"), "version = 4\n").unwrap();
            }
            line => {
                commands += 1;
                let is_new = line.starts_with("weir new");
                let said = run(line, if is_new { author.path() } else { &project });
                if line.starts_with("weir keygen") {
                    trusted = said;
                }
            }
        }
    }
    // Only the package and the public key reach the device.
    fs::copy(project.join("echo-0.1.0.tar"), device.path().join("echo-0.1.0.tar")).unwrap();
    drop(author);
    let file = shown("weir.toml");
    let lines = file.lines().filter(|line| !line.starts_with("trusted-keys"));
    let file: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(device.path().join("weir.toml"), file + &trusted).unwrap();
    let path = device.path().to_owned();
    let mut command: Command = weir(&path);
    command.args(["run", "weir.toml"]).envs(places(&path));
    let mut main = Running::spawn(device, command);
    main.until("extensions are ready");
    let mut said = String::new();
    for line in shown("device").lines() {
        commands += 1;
        said = run(line, &path);
    }
    assert!(said.contains("state     ready"), "{said}");
    assert_eq!(commands, 8);
}
