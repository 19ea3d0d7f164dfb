//! `weir upgrade`: what comes in the place of what, and what needs a word of the operator.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{Place, component, named};

#[test]
fn an_upgrade_says_what_changes_and_goes_down_only_if_told_so() {
    let place = Place::new();
    place.on_device(&["add", "echo-1.0.0.tar", "--grant", "all"]).good();
    let first = place.file();
    place.package("1.1.0", "\"clock@1\"");
    fs::copy(place.path("echo-1.1.0.tar"), place.path("echo-1.0.0.tar")).unwrap();
    let outdated = place.on_device(&["outdated"]).good();
    let row: Vec<_> = outdated.lines().nth(1).unwrap().split_whitespace().take(3).collect();
    assert_eq!(row, ["echo", "1.0.0", "1.1.0"], "{outdated}");

    let upgraded = place.on_device(&["upgrade", "echo"]);
    assert_eq!(upgraded.code, 0, "{}", upgraded.stderr);
    for line in
        ["what it asks for has changed:\n  + wants = [\"clock@1\"]\n", "in the place of 1.0.0 of `echo`"]
    {
        assert!(upgraded.stdout.contains(line), "{}", upgraded.stdout);
    }
    let warning = "by its manifest it calls `clock@1`, which its `wants` does not have";
    assert!(upgraded.stderr.contains(warning), "{}", upgraded.stderr);
    assert!(!place.file().contains("wants") && place.file().contains("echo-1.1.0.wasm"), "{}", place.file());
    assert_eq!(place.on_device(&["outdated"]).good(), "nothing is outdated\n");
    assert_eq!(place.on_device(&["upgrade", "--all"]).good(), "`echo` has version 1.1.0 already\n");

    place.package("1.0.0", "");
    place.refuses(&["upgrade", "echo", "echo-1.0.0.tar"], "has version 1.1.0, and 1.0.0 is lower");
    assert_eq!(place.on_device(&["upgrade", "echo", "echo-1.0.0.tar", "--downgrade"]).code, 0);
    assert_eq!(place.file(), first);
    // The same version with another content is none.
    place.package("1.0.0", "\"other@1\"");
    place.refuses(&["upgrade", "echo", "echo-1.0.0.tar"], "has version 1.0.0 with another content");
    place.refuses(&["upgrade", "other"], "it is not known where `other` came from");
    fs::remove_file(place.path("echo-1.0.0.tar")).unwrap();
    place.refuses(&["upgrade", "--all"], "error: `echo` was not upgraded: the package `");
    place.refuses(&["outdated"], "error: `echo`: the package `");
}

#[test]
fn an_upgrade_is_the_same_component_by_id_and_stays_signed() {
    let place = Place::new();
    place.on_device(&["add", "echo-1.0.0.tar", "--grant", "all"]).good();
    // Another component of the same trusted key.
    fs::write(place.path("flasher.wasm"), named("flasher", "9.0.0", "")).unwrap();
    let package = |args: &[&str]| place.weir(&[&["package"], args].concat()).good();
    package(&["flasher.wasm", "--key", "release.key", "--output", "flasher.tar"]);
    let why =
        "`echo` has the component `echo`, and the package `flasher.tar` has `flasher`: `--signed-as flasher`";
    place.refuses(&["upgrade", "echo", "flasher.tar"], why);
    place.refuses(&["upgrade", "echo", "flasher.tar", "--signed-as", "other"], "`--signed-as flasher`");
    fs::write(place.path("echo.wasm"), component("1.1.0", "")).unwrap();
    package(&["echo.wasm", "--output", "unsigned.tar"]);
    place.refuses(
        &["upgrade", "echo", "unsigned.tar"],
        "has a signed component, and the package `unsigned.tar` has no",
    );
    // Another trusted key is shown.
    let trusted = place.weir(&["keygen", "second.key"]).good();
    let second = trusted.split('"').nth(1).unwrap();
    let file = place.file().replace("trusted-keys = [", &format!("trusted-keys = [\"{second}\", "));
    fs::write(place.path("device/weir.toml"), file).unwrap();
    package(&["echo.wasm", "--key", "second.key", "--output", "second.tar"]);
    let upgraded = place.on_device(&["upgrade", "echo", "second.tar"]);
    assert!(upgraded.stdout.contains("\nthe one before was signed with the key `"), "{}", upgraded.stdout);
    assert_eq!(place.on_device(&["upgrade", "echo", "flasher.tar", "--signed-as", "flasher"]).code, 0);
    // Without the component before, nothing is known of its version.
    fs::remove_file(place.path("device/plugins/echo-9.0.0.wasm")).unwrap();
    fs::remove_file(place.path("device/plugins/echo-9.0.0.wasm.sig")).unwrap();
    place
        .refuses(&["upgrade", "echo", "echo-1.0.0.tar"], "the version of `echo` is not known: `--downgrade`");
    let table = "update.prove-for = \"1 min\"\n";
    fs::write(place.path("device/weir.toml"), place.file() + table).unwrap();
    let downgraded = place.on_device(&["upgrade", "echo", "echo-1.0.0.tar", "--downgrade"]).stdout;
    assert!(downgraded.contains("only with `weir reload echo --now`"), "{downgraded}");
}

#[test]
fn what_the_operator_wrote_meanwhile_or_in_another_form_stays() {
    let place = Place::new();
    place.on_device(&["add", "echo-1.0.0.tar"]).good();
    let dirs = "\n[[extension.grants.dirs]]\nhost = \"/\" # Mine.\nguest = \"/data\"\nmode = \"ro\"\n";
    fs::write(place.path("device/weir.toml"), place.file() + dirs).unwrap();
    place.package("1.1.0", "");
    let grant = "grants.dirs = [{ host = \"/srv\", guest = \"/data\", mode = \"ro\" }]";
    place.refuses(&["upgrade", "echo", "echo-1.1.0.tar", "--grant", grant], "cannot join what is there");
    // A file that only its owner reads stays so.
    fs::set_permissions(place.path("device/weir.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.on_device(&["upgrade", "echo", "echo-1.1.0.tar"]).code, 0);
    let mode = fs::metadata(place.path("device/weir.toml")).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, place.file().contains("# Mine.")), (0o600, true));
}
