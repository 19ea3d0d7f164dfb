//! `weir package`, `sign`, `verify`, `add`, `upgrade`, `outdated` and `remove`, from an author's directory to a device's.

mod registry;
mod upgrades;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, Stdio},
};

use tempfile::TempDir;

use super::support::{Done, Running, done, places, weir};

/// The manifest of a component with this id and version, which asks for these contracts.
fn manifest(id: &str, version: &str, wants: &str) -> String {
    format!(
        r#"{{"schema":1,"id":"{id}","version":"{version}","fulfills":["echo@1"],"wants":[{wants}],
            "grants":{{"dirs":[{{"guest":"/data","mode":"ro"}}]}}}}"#
    )
}

/// A program that ends at once, with a manifest.
fn component(version: &str, wants: &str) -> Vec<u8> {
    named("echo", version, wants)
}

/// A component with this id.
fn named(id: &str, version: &str, wants: &str) -> Vec<u8> {
    let mut component = wat::parse_str(
        r#"(component
            (core module $main (func (export "run") (result i32) i32.const 0))
            (core instance $main (instantiate $main))
            (func $run (result (result)) (canon lift (core func $main "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $run)))"#,
    )
    .unwrap();
    let (name, content) = ("weir:manifest", manifest(id, version, wants));
    let [name_length, length] = [name.len(), 1 + name.len() + content.len()];
    // LEB128 in two bytes: enough for 16,383.
    component
        .extend([0, length % 128 + 128, length / 128, name_length].map(|byte| u8::try_from(byte).unwrap()));
    component.extend(name.bytes().chain(content.bytes()));
    component
}

/// What a device has before its first package.
const FILE: &str = "# The device's own.\n[main]\nplugin-dir = \"plugins\"\nTRUSTED\n\n# It was here before.\n\
    [[extension]]\nid = \"other\"\npath = \"other.wasm\" # Ours.\n";

/// A directory with the author's files and a device, which trusts the author's key.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        let trusted = place.weir(&["keygen", "release.key"]).good();
        fs::create_dir_all(place.path("device/plugins")).unwrap();
        fs::write(place.path("device/plugins/other.wasm"), component("0.1.0", "")).unwrap();
        fs::write(place.path("device/weir.toml"), FILE.replace("TRUSTED\n", &trusted)).unwrap();
        fs::write(place.path("LICENSE"), "Do as you like.\n").unwrap();
        fs::write(
            place.path("Cargo.lock"),
            "version = 4\n[[package]]\nname = \"planted\"\nversion = \"6.6.6\"\n\
             source = \"registry+https://github.com/rust-lang/crates.io-index\"\n",
        )
        .unwrap();
        place.package("1.0.0", "");
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn weir(&self, args: &[&str]) -> Done {
        done(weir(self.dir.path()).args(args))
    }

    /// Runs a verb that changes the device's file.
    fn on_device(&self, args: &[&str]) -> Done {
        self.weir(&[args, &["--config", "device/weir.toml"]].concat())
    }

    /// Makes `echo-VERSION.tar`, signed.
    fn package(&self, version: &str, wants: &str) -> String {
        fs::write(self.path("echo.wasm"), component(version, wants)).unwrap();
        let args =
            ["package", "echo.wasm", "--licence", "LICENSE", "--lock", "Cargo.lock", "--key", "release.key"];
        self.weir(&args).good()
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path("device/weir.toml")).unwrap()
    }

    /// The names of what is in the plugin directory.
    fn plugins(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("device/plugins")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Checks that this is refused for this reason, and nothing was written.
    fn refuses(&self, args: &[&str], why: &str) {
        let (file, plugins) = (self.file(), self.plugins());
        let refused = self.on_device(args);
        assert_ne!(refused.code, 0, "{args:?}: {}", refused.stdout);
        assert!(refused.stderr.contains(why), "{args:?}: {}", refused.stderr);
        assert_eq!((self.file(), self.plugins()), (file, plugins), "{args:?}");
    }
}

#[test]
fn a_package_is_the_same_each_time_and_says_what_is_in_its_component() {
    let place = Place::new();
    let first = place.package("1.0.0", "");
    let tar = fs::read(place.path("echo-1.0.0.tar")).unwrap();
    assert_eq!(
        (place.package("1.0.0", ""), fs::read(place.path("echo-1.0.0.tar")).unwrap()),
        (first.clone(), tar)
    );
    assert!(first.starts_with("echo-1.0.0.tar@sha256:"), "{first}");

    let package = weir_package::read(&place.path("echo-1.0.0.tar"), 1 << 20).unwrap();
    let contents = package.contents().unwrap();
    let documents = &contents.documents;
    let purl = &documents.sbom.as_ref().unwrap()["components"][0]["purl"];
    assert_eq!(purl, "pkg:cargo/planted@6.6.6");
    assert_eq!(documents.licence.as_deref(), Some("Do as you like.\n"));
    assert_eq!(documents.manifest.as_ref().unwrap()["fulfills"][0], "echo@1");
    assert!(documents.stanza.as_ref().unwrap().contains("fulfills = [\"echo@1\"]"));
    assert_eq!(contents.exports, ["wasi:cli/run@0.2.12"]);
    assert_eq!(fs::read(&package.component).unwrap(), component("1.0.0", ""));

    let dated = done(
        weir(place.dir.path())
            .args(["package", "echo.wasm", "--output", "dated"])
            .env("SOURCE_DATE_EPOCH", "1"),
    );
    dated.good();
    let created = weir_package::read(&place.path("dated"), 1 << 20).unwrap().contents().unwrap().created;
    assert_eq!(created, "1970-01-01T00:00:01Z");
    let lock = place.weir(&["package", "echo.wasm", "--lock", "LICENSE"]);
    assert!(lock.stderr.contains("`LICENSE` is not read: lock files are"), "{}", lock.stderr);
}

#[test]
fn a_signature_is_of_one_component_and_one_key() {
    let place = Place::new();
    let trusted = place.weir(&["keygen", "--public", "release.key"]).good();
    let key = trusted.split('"').nth(1).unwrap().to_owned();
    let signed = format!("`echo` 1.0.0, signed with the key `{key}`\n");
    assert_eq!(place.weir(&["sign", "echo.wasm", "--key", "release.key"]).good(), "echo.wasm.sig\n");
    assert_eq!(place.weir(&["verify", "echo.wasm", "--trusted-keys", &key]).good(), signed);
    assert_eq!(place.weir(&["verify", "echo-1.0.0.tar", "--trusted-keys", &key]).good(), signed);
    assert_eq!(place.on_device(&["verify", "echo-1.0.0.tar"]).good(), signed);

    // Another key signs the package in place.
    place.weir(&["keygen", "other.key"]).good();
    place.weir(&["package", "echo.wasm", "--output", "layout"]).good();
    place.refuses(&["verify", "layout"], "error: `layout` has no signature");
    place.weir(&["sign", "layout", "--key", "other.key"]).good();
    place.refuses(&["verify", "layout"], "which `main.trusted-keys` does not list");
    place.weir(&["sign", "layout", "--key", "release.key"]).good();
    assert_eq!(place.on_device(&["verify", "layout"]).good(), signed);
    // A name is that of the manifest, and given where there is none.
    let renamed = place.weir(&["sign", "layout", "--key", "release.key", "--id", "mine"]);
    assert!(renamed.stderr.contains("is `echo` 1.0.0 by its manifest"), "{}", renamed.stderr);
    fs::write(place.path("bare.wasm"), wat::parse_str("(component)").unwrap()).unwrap();
    let sign = ["sign", "bare.wasm", "--key", "release.key"];
    assert!(place.weir(&sign).stderr.contains("has no manifest: give `--id` and `--version`"));
    place.weir(&[&sign[..], &["--id", "mine", "--version", "2.0.0"]].concat()).good();
    let mine = format!("`mine` 2.0.0, signed with the key `{key}`\n");
    assert_eq!(place.on_device(&["verify", "bare.wasm"]).good(), mine);
    let wrong = place.weir(&[&sign[..], &["--id", "mine", "--version", "one"]].concat());
    assert!(wrong.stderr.contains("`one` is not a version such as `1.2.0`"), "{}", wrong.stderr);
    fs::write(place.path("echo.wasm"), component("1.0.1", "")).unwrap();
    place.refuses(&["verify", "echo.wasm"], "`echo.wasm` has ");
    fs::remove_file(place.path("echo.wasm.sig")).unwrap();
    place.refuses(&["verify", "echo.wasm"], "error: `echo.wasm` has no signature");
}

#[test]
fn a_component_comes_and_goes_and_leaves_the_operators_words_as_they_were() {
    let place = Place::new();
    let before = place.file();
    let added = place.on_device(&["add", "echo-1.0.0.tar", "--grant", "fulfills"]).good();
    for line in [
        "`echo` 1.0.0, signed with the key",
        "granted:\n  fulfills = [\"echo@1\"]\n",
        "it asks for this, which it does not have:\n  grants.dirs = [\n",
        "added to `device/weir.toml` as `echo`; its component is `",
    ] {
        assert!(added.contains(line), "{added}");
    }
    let tar = place.path("echo-1.0.0.tar").canonicalize().unwrap();
    let package = weir_package::read(&tar, 1 << 20).unwrap();
    let (sha256, manifest) = (package.sha256.hex(), package.digest);
    let table = format!(
        "\n[[extension]]\nid = \"echo\"\npath = \"echo-1.0.0.wasm\" # from {} with the manifest {manifest}\nsha256 = \"{sha256}\"\n\
         fulfills = [\"echo@1\"]\n",
        tar.display()
    );
    assert_eq!(place.file(), before.clone() + &table);
    assert_eq!(place.plugins(), ["echo-1.0.0.wasm", "echo-1.0.0.wasm.sig", "other.wasm"]);
    place.on_device(&["verify", "device/plugins/echo-1.0.0.wasm"]).good();
    place.refuses(&["add", "echo-1.0.0.tar"], "has an extension `echo` already: `weir upgrade echo SOURCE`");
    // A second time under another id, with a grant that only the operator can give.
    let dirs = "grants.dirs = [{ host = \"/\", guest = \"/data\", mode = \"ro\" }]";
    place.on_device(&["add", "echo-1.0.0.tar", "--id", "again", "--grant", dirs]).good();
    assert!(place.file().contains(dirs), "{}", place.file());
    place.on_device(&["remove", "again"]).good();

    let removed = place.on_device(&["remove", "echo"]).good();
    assert!(
        removed.starts_with("removed `echo` from `device/weir.toml`\nremoved its component `"),
        "{removed}"
    );
    assert_eq!((place.file(), place.plugins()), (before, vec!["other.wasm".to_owned()]));
    assert_eq!(place.on_device(&["remove", "echo"]).code, 4);
    // What the operator put there by hand stays, whatever the comment says.
    place.on_device(&["remove", "other"]).good();
    place.on_device(&["add", "echo-1.0.0.tar"]).good();
    fs::write(place.path("device/plugins/echo-1.0.0.wasm"), component("1.0.0", "\"mine@1\"")).unwrap();
    place.on_device(&["remove", "echo"]).good();
    assert_eq!(place.plugins(), ["echo-1.0.0.wasm", "echo-1.0.0.wasm.sig", "other.wasm"]);
}

#[test]
fn what_the_operator_does_not_allow_is_refused_and_leaves_nothing() {
    let place = Place::new();
    place.weir(&["package", "echo.wasm", "--output", "unsigned.tar"]).good();
    place.weir(&["keygen", "other.key"]).good();
    place.weir(&["package", "echo.wasm", "--output", "theirs", "--key", "other.key"]).good();
    place.refuses(&["add", "theirs"], "which `main.trusted-keys` does not list");
    place.refuses(&["add", "absent.tar"], "the package `absent.tar` cannot be read: cannot use `absent.tar`");
    place.refuses(&["add", "echo.wasm"], "echo.wasm` is no tar, or is damaged");
    for (grant, why) in [
        ("wants", "it does not ask for `wants`, but for fulfills, grants.dirs"),
        ("grants.dirs", "`grants.dirs` needs a value that only you know"),
        ("limits.memory = '1 GiB'", "`limits` is no grant"),
        ("wants = 5", "must be a list of strings"),
        ("wants = [", "is not `KEY = VALUE` in TOML"),
        ("wants = ['a@1']\nrestart.policy = 'never'", "is not `KEY = VALUE` in TOML"),
    ] {
        place.refuses(&["add", "echo-1.0.0.tar", "--grant", grant], why);
    }
    place.on_device(&["add", "unsigned.tar"]).good();
    place.on_device(&["remove", "echo"]).good();

    // Now with the rule, and with lists of what was revoked.
    let plain = place.file();
    let with = |lines: &str| {
        fs::write(place.path("device/weir.toml"), plain.replace("[main]\n", &format!("[main]\n{lines}\n")))
            .unwrap();
    };
    with("require-signature = true");
    place.refuses(&["add", "unsigned.tar"], "has no signature, and `main.require-signature` asks for one");
    with("revoked = \"revoked\"");
    let package = weir_package::read(&place.path("echo-1.0.0.tar"), 1 << 20).unwrap();
    let signature = package.signature.clone().unwrap();
    let key = signature.lines().nth(1).unwrap();
    for line in [key.to_owned(), format!("sha256 {}", package.sha256.hex())] {
        fs::write(place.path("device/revoked"), line).unwrap();
        place.refuses(&["add", "echo-1.0.0.tar"], "revoked");
        place.refuses(&["verify", "echo-1.0.0.tar"], "revoked");
    }
    fs::write(place.path("device/revoked"), "").unwrap();
    place.on_device(&["add", "echo-1.0.0.tar"]).good();
}

#[test]
fn the_lock_follows_and_keeps_what_may_come_back() {
    let place = Place::new();
    let sha256 = || weir_package::read(&place.path("echo-1.0.0.tar"), 1 << 20).unwrap().sha256.hex();
    let lock = || fs::read_to_string(place.path("device/weir.lock")).unwrap();
    place.weir(&["lock", "device/weir.toml"]).good();
    place.on_device(&["add", "echo-1.0.0.tar"]).good();
    let first = sha256();
    let row = format!("sha256 = \"{first}\"\nfalls-back-to = []\n");
    assert!(lock().contains(&row) && lock().contains("version = \"1.0.0\""), "{}", lock());
    place.package("1.1.0", "");
    fs::copy(place.path("echo-1.1.0.tar"), place.path("echo-1.0.0.tar")).unwrap();
    assert_eq!(place.on_device(&["upgrade", "--all"]).code, 0);
    let row = format!("sha256 = \"{}\"\nfalls-back-to = [\"{first}\"]\n", sha256());
    assert!(lock().contains(&row), "{}", lock());
    // Where it is not known which versions are proven, none is taken from the list.
    let second = sha256();
    fs::create_dir(place.path("device/state")).unwrap();
    fs::set_permissions(place.path("device/state"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(place.path("device/state/weir-versions-echo"), "of another Main").unwrap();
    let file = place.file().replace("[main]\n", "[main]\nstate-dir = \"state\"\n");
    fs::write(place.path("device/weir.toml"), file.trim_end().to_owned() + "\nupdate = {}\n").unwrap();
    for (version, earlier) in [("1.2.0", vec![&second, &first]), ("1.3.0", vec![&second, &first])] {
        let before = sha256();
        place.package(version, "");
        fs::copy(place.path(&format!("echo-{version}.tar")), place.path("echo-1.0.0.tar")).unwrap();
        assert_eq!(place.on_device(&["upgrade", "--all"]).code, 0);
        let mut earlier: Vec<_> = earlier.into_iter().map(|hash| format!("\"{hash}\"")).collect();
        if before != second {
            earlier.insert(0, format!("\"{before}\""));
        }
        let row = format!("sha256 = \"{}\"\nfalls-back-to = [{}]\n", sha256(), earlier.join(", "));
        assert!(lock().contains(&row), "{row}\n{}", lock());
    }
    // A version that never ran is proven by nobody.
    fs::remove_file(place.path("device/state/weir-versions-echo")).unwrap();
    let before = sha256();
    place.package("1.4.0", "");
    fs::copy(place.path("echo-1.4.0.tar"), place.path("echo-1.0.0.tar")).unwrap();
    assert_eq!(place.on_device(&["upgrade", "--all"]).code, 0);
    let row = format!("sha256 = \"{}\"\nfalls-back-to = [\"{before}\"]\n", sha256());
    assert!(lock().contains(&row), "{}", lock());
    let with = lock();
    place.on_device(&["remove", "echo"]).good();
    assert!(!lock().contains("echo"), "{}", lock());
    // A damaged lock is no lock to go on from.
    fs::write(place.path("device/weir.lock"), with.replacen("1.4.0", "1.4.1", 1)).unwrap();
    place.refuses(&["add", "echo-1.0.0.tar"], "is damaged, or was changed by hand");
}

#[test]
fn every_byte_of_a_signed_package_counts() {
    let place = Place::new();
    let path = place.path("echo-1.0.0.tar");
    let good = fs::read(&path).unwrap();
    let file = place.file();
    // Some of each part: the crate of packages flips all of them.
    let mut refused = 0;
    for index in (0..good.len()).step_by(311) {
        let mut flipped = good.clone();
        flipped[index] ^= 4;
        fs::write(&path, flipped).unwrap();
        let added = place.on_device(&["add", "echo-1.0.0.tar"]);
        if added.code == 0 {
            // A byte of padding: what is there is what was signed.
            let installed = fs::read(place.path("device/plugins/echo-1.0.0.wasm")).unwrap();
            assert_eq!(installed, component("1.0.0", ""), "byte {index}");
            place.on_device(&["remove", "echo"]).good();
        } else {
            refused += 1;
        }
        assert_eq!(
            (place.file(), place.plugins()),
            (file.clone(), vec!["other.wasm".to_owned()]),
            "byte {index}"
        );
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn commands_at_once_wait_for_each_other_and_lose_nothing() {
    let place = Place::new();
    let start = |number: usize| -> Child {
        let id = format!("echo-{number}");
        let args = ["add", "echo-1.0.0.tar", "--id", &id, "--config", "device/weir.toml"];
        weir(place.dir.path()).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..6).map(start).collect();
    for child in all {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let file = place.file();
    for number in 0..6 {
        assert!(file.contains(&format!("id = \"echo-{number}\"")), "{file}");
    }
    assert_eq!(place.weir(&["check", "device/weir.toml"]).code, 0);
}

#[test]
fn a_file_that_is_included_or_linked_is_changed_where_it_is() {
    let place = Place::new();
    let file = place.file();
    fs::create_dir(place.path("device/conf.d")).unwrap();
    fs::create_dir(place.path("real")).unwrap();
    fs::rename(place.path("device/weir.toml"), place.path("real/weir.toml")).unwrap();
    let main =
        format!("include = [\"conf.d/*.toml\"]\n{}", file.replace("\"plugins\"", "\"../device/plugins\""));
    fs::write(place.path("real/weir.toml"), &main).unwrap();
    fs::set_permissions(place.path("real/weir.toml"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../real/weir.toml", place.path("device/weir.toml")).unwrap();
    let included = "[[extension]]\nid = \"echo\"\npath = \"old.wasm\"\n";
    fs::write(place.path("device/conf.d/echo.toml"), included).unwrap();
    // The paths of a file that is a link are those of the link's directory.
    fs::write(place.path("device/plugins/old.wasm"), component("0.9.0", "")).unwrap();
    place.on_device(&["upgrade", "echo", "echo-1.0.0.tar"]);
    let changed = fs::read_to_string(place.path("device/conf.d/echo.toml")).unwrap();
    assert!(changed.contains("path = \"echo-1.0.0.wasm\" # from "), "{changed}");
    assert_eq!(place.file(), main);
    place.on_device(&["add", "echo-1.0.0.tar", "--id", "new"]).good();
    let real = place.path("real/weir.toml");
    assert!(fs::read_to_string(&real).unwrap().contains("id = \"new\""));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(place.path("device/weir.toml").is_symlink());
    // A contract with two owners is refused by the loader, before anything is written.
    let grant = ["--id", "third", "--grant", "fulfills"];
    place.on_device(&["upgrade", "echo", "echo-1.0.0.tar", "--grant", "fulfills"]);
    fs::write(place.path("device/conf.d/echo.toml"), changed + "fulfills = [\"echo@1\"]\n").unwrap();
    place.refuses(&[&["add", "echo-1.0.0.tar"], &grant[..]].concat(), "echo@1");
}

#[test]
fn a_component_that_main_would_not_load_for_its_size_is_warned_of() {
    let place = Place::new();
    let on_device = |args: &[&str]| {
        let mut command = weir(place.dir.path());
        command.args(args).args(["--config", "device/weir.toml"]);
        done(command.env("WEIR_LIMITS_MEDIUM_FILE_SIZE", "1 KiB"))
    };
    let warned = "Main does not load its component of ";
    let small = on_device(&["add", "echo-1.0.0.tar"]);
    assert_eq!((small.code, small.stderr.contains(warned)), (0, false), "{}", small.stderr);
    let wants: Vec<_> = (0..200).map(|number| format!("\"wanted-{number}@1\"")).collect();
    place.package("1.1.0", &wants.join(","));
    for args in [&["add", "echo-1.1.0.tar", "--id", "again"][..], &["upgrade", "echo", "echo-1.1.0.tar"]] {
        let large = on_device(args);
        assert_eq!(large.code, 0, "{}", large.stderr);
        assert!(large.stderr.contains(warned), "{}", large.stderr);
        assert!(large.stderr.contains("`limits.file-size` is 1024"), "{}", large.stderr);
    }
}

#[test]
fn what_was_added_is_run_by_a_main_after_a_reload() {
    let place = Place::new();
    let main_file =
        place.file().replace("path = \"other.wasm\"", "path = \"other.wasm\"\nrestart.policy = \"never\"");
    fs::write(
        place.path("device/weir.toml"),
        main_file.replace("[main]\n", "[main]\nrequire-signature = true\n"),
    )
    .unwrap();
    fs::write(place.path("device/plugins/other.wasm"), component("0.1.0", "")).unwrap();
    place.weir(&["sign", "device/plugins/other.wasm", "--key", "release.key"]).good();
    let mut command = weir(&place.path("device"));
    command.args(["run", "weir.toml"]).envs(places(&place.path("device")));
    let device = place.path("device");
    let mut main = Running::spawn(place.dir, command);
    main.until("extensions are ready");
    let on = |args: &[&str]| done(weir(&device).args(args));
    on(&["add", "../echo-1.0.0.tar"]).good();
    on(&["reload", "--all"]);
    let status = on(&["status", "echo"]).good();
    assert!(status.contains("config    as the file has it"), "{status}");
}

#[test]
fn what_is_refused_leaves_not_even_a_directory() {
    let place = Place::new();
    let file = place.file().replace("\"plugins\"", "\"new\"");
    fs::write(place.path("device/weir.toml"), file).unwrap();
    place.refuses(&["add", "echo-1.0.0.tar", "--grant", "publishes"], "publishes");
    assert!(!place.path("device/new").exists());
}
