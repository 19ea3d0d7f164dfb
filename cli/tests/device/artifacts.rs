//! What runs on a device, and what is refused with the reason.

use std::fs;

use super::support::{
    Device, configure, configured, done, has_no_compiler, maker, puppet, target, variable, weir, weir_here,
};

#[test]
fn a_signed_artifact_is_checked_and_serves() {
    let dir = configured(&puppet("puppet", ""));
    assert_eq!(done(weir(dir.path()).args(["check", "weir.toml"])).good(), "`puppet` is ok\n");
    let device = Device::start(dir);
    assert_eq!(device.tell("puppet", "echo here"), "here");
    let cache = device.path().join("cache");
    let (code, log) = device.shut_down();
    assert_eq!(code, Some(0), "{log}");
    assert!(!cache.exists(), "something was compiled");
}

#[test]
fn an_artifact_tells_its_target_and_address_space() {
    let dir = configured(&puppet("puppet", ""));
    // Here, since the device has no such command.
    let told = |arguments: &[&str]| done(weir_here(dir.path()).args(arguments)).good();
    let facts: serde_json::Value =
        serde_json::from_str(&told(&["inspect", "--json", "puppet.cwasm"])).unwrap();
    assert_eq!(facts["signed"], true);
    assert!(maker().trusted.contains(facts["key"].as_str().unwrap()), "{facts}");
    let text = told(&["inspect", "puppet.cwasm"]);
    for key in ["target", "address-space"] {
        assert!(text.contains(facts[key].as_str().unwrap()), "no {key} in {text}");
    }
}

#[test]
fn an_artifact_for_another_target_is_refused_with_the_command_that_makes_the_right_one() {
    let dir = configured(&puppet("puppet", ""));
    let inspected = done(weir_here(dir.path()).args(["inspect", "--json", "puppet.cwasm"])).good();
    let facts: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    let (own, class) = (facts["target"].as_str().unwrap(), facts["address-space"].as_str().unwrap());
    let other =
        if own.starts_with("x86_64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
    let (artifact, component) = (dir.path().join("puppet.cwasm"), test_guests::path("puppet"));
    maker().compile(&component, &["--target".to_owned(), other.to_owned()], &artifact);
    let refused = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert_eq!(refused.code, 1, "{refused:?}");
    let of = format!(
        "is compiled for `{other}` with a large address space, and this Main needs `{own}` with a {class} address space"
    );
    assert!(refused.stderr.contains(&of), "{}", refused.stderr);

    let (_, advice) = refused.stderr.split_once(": `weir compile ").unwrap();
    let (advice, _) = advice.split_once('`').unwrap();
    let advised: Vec<String> = advice.split(' ').map(ToOwned::to_owned).collect();
    maker().compile(&component, &advised, &artifact);
    assert_eq!(done(weir(dir.path()).args(["check", "weir.toml"])).good(), "`puppet` is ok\n");
}

#[test]
fn an_artifact_of_a_stranger_or_with_one_bit_changed_does_not_run() {
    let dir = configured(&puppet("puppet", ""));
    let artifact = dir.path().join("puppet.cwasm");
    let refused = || done(weir(dir.path()).args(["check", "weir.toml"])).stderr;
    let mut bytes = fs::read(&artifact).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&artifact, &bytes).unwrap();
    assert!(refused().contains("does not match its signature"), "{}", refused());

    done(weir_here(dir.path()).args(["keygen", "stranger.key"])).good();
    let mut compile = weir_here(dir.path());
    compile.arg("compile").arg(test_guests::path("puppet")).args(["--key", "stranger.key", "--output"]);
    done(compile.arg(&artifact).args(target())).good();
    assert!(refused().contains("which `main.trusted-keys` does not list"), "{}", refused());

    bytes[7] = 2;
    fs::write(&artifact, bytes).unwrap();
    let old =
        "is an artifact of format 2, and this version of Weir runs format 3: compile the component again";
    assert!(refused().contains(old), "{}", refused());
}

#[test]
fn a_device_without_the_compiler_says_what_to_do_with_a_component() {
    if !has_no_compiler() {
        // `command_line` has tests of that.
        assert!(variable("WEIR_DEVICE_BIN").is_none(), "this device should have no compiler");
        return;
    }
    let dir = configured("");
    fs::copy(test_guests::path("puppet"), dir.path().join("puppet.cwasm")).unwrap();
    configure(dir.path(), &puppet("puppet", ""));
    let refused = done(weir(dir.path()).args(["check", "weir.toml"]));
    let advice = "must be compiled, and this Main runs only artifacts: `weir compile` makes them";
    assert!(refused.code == 1 && refused.stderr.contains(advice), "{refused:?}");
    let absent = done(weir(dir.path()).args(["compile", "puppet.cwasm"]));
    assert!(absent.code == 2 && absent.stderr.contains("unrecognized subcommand"), "{absent:?}");
}
