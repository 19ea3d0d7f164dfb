//! Which versions may follow which, by their signatures.

use super::*;
use crate::Found;

/// What is found of this component, signed as this version, where signatures are required.
fn signed(component: u8, version: Option<&str>) -> Found {
    let signature = version.map(|version| format!("weir signature 1\nversion {version}\n").into());
    Found { hash: hash(component), signature, must_be_newer: true }
}

fn choose(device: &Device, component: u8, version: Option<&str>, again: bool) -> Chosen {
    let copy = |to: &mut dyn Write| to.write_all(&bytes(component)).map_err(|error| error.to_string());
    let config = extension("a", "");
    let chosen = device.versions.choose(&config, Ok(signed(component, version)), copy, &unread, again);
    if let Some(number) = chosen.number {
        device.versions.serves(&config, number, chosen.is_canary);
    }
    chosen
}

fn prove(device: &Device, component: u8, version: Option<&str>, again: bool) {
    let chosen = choose(device, component, version, again);
    assert_eq!((chosen.hash, chosen.held_back), (Some(hash(component)), None));
    device.versions.accept(&a(), "it is good").unwrap();
    device.versions.save(&a()).unwrap();
}

/// Makes Main decide that nothing is revoked but this component.
fn revoke(device: &Device, component: u8) {
    device.versions.decide_by(|_| Ok(()), move |found, _| found == hash(component));
}

#[test]
fn what_does_not_name_its_version_is_held_back_by_what_does_unless_the_operator_lets_it_run() {
    for mut device in Device::both() {
        prove(&device, 1, None, false);
        prove(&device, 2, Some("2.0.0"), false);
        let chosen = choose(&device, 3, None, false);
        assert_held_back(&chosen, 2, 2);
        assert_eq!(
            chosen.held_back.unwrap(),
            "it is an artifact without a `.sig` that names its version, and 2.0.0 is proven: `weir reload a --now` runs \
             it all the same"
        );
        prove(&device, 3, None, true);
        device.restart();
        assert_eq!(choose(&device, 3, None, false).held_back, None);
        // It did not lower what others are compared with.
        assert!(choose(&device, 4, Some("1.9.0"), false).held_back.unwrap().contains("2.0.0 is proven"));
        assert!(choose(&device, 1, None, false).held_back.is_some());
        assert_eq!(choose(&device, 5, Some("2.0.0"), false).held_back, None);
    }
}

#[test]
fn where_no_signature_is_required_or_the_operator_names_the_component_it_need_not_name_its_version() {
    let device = Device::on_disk();
    prove(&device, 1, Some("2.0.0"), false);
    assert_eq!(device.run(&extension("a", ""), 2).held_back, None);
}

#[test]
fn the_highest_proven_version_counts_until_the_operator_goes_back() {
    let mut device = Device::on_disk();
    let is_held_back = |device: &Device, component, version| {
        choose(device, component, Some(version), false).held_back.is_some()
    };
    prove(&device, 1, Some("1.0.0"), false);
    prove(&device, 2, Some("2.0.0"), false);
    // One of an unknown version is proven after it, while no signatures are required.
    device.prove(&extension("a", ""), 3);
    device.restart();
    assert!(is_held_back(&device, 1, "1.0.0") && is_held_back(&device, 4, "1.9.0"));
    // What did not come up has not changed that.
    let failed = choose(&device, 5, Some("1.5.0"), true).number.unwrap();
    device.versions.refuse(&a(), failed, &UpdateConfig::default(), "it trapped").unwrap();
    assert!(is_held_back(&device, 4, "1.9.0"));
    prove(&device, 4, Some("1.4.0"), true);
    device.restart();
    assert!(!is_held_back(&device, 4, "1.4.0") && is_held_back(&device, 1, "1.0.0"));
    assert!(!is_held_back(&device, 6, "1.6.0"));
    prove(&device, 7, Some("3.0.0"), false);
    assert!(is_held_back(&device, 6, "1.6.0"));
    device.versions.roll_back(&a(), None, false, "an operator").unwrap();
    assert!(!is_held_back(&device, 6, "1.6.0"));
}

#[test]
fn a_revoked_version_holds_no_older_one_back() {
    let device = Device::on_disk();
    prove(&device, 1, Some("1.0.0"), false);
    prove(&device, 2, Some("2.0.0"), false);
    let older = |is_revoked: bool| {
        device.versions.newer_than(&extension("a", ""), &signed(3, Some("1.9.0")), |_, signature| {
            is_revoked && signature.is_some_and(|text| text.contains("2.0.0"))
        })
    };
    assert_eq!((older(false).map(|it| it.0), older(true)), (Some(2), None));
    revoke(&device, 2);
    assert_eq!(choose(&device, 3, Some("1.9.0"), false).number, Some(3));
    assert!(choose(&device, 4, Some("0.9.0"), false).held_back.unwrap().contains("1.0.0 is proven"));
}

#[test]
fn nothing_runs_that_may_be_older_than_a_record_that_cannot_be_read() {
    for (from, to) in [("2.0.0", "1.0.0"), ("weir versions ", "weir versions 9")] {
        let mut device = Device::on_disk();
        prove(&device, 1, Some("2.0.0"), false);
        let path = device.path("weir-versions-a");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        device.restart();
        let refused = choose(&device, 2, Some("1.0.0"), false).refused.unwrap();
        assert!(
            refused.starts_with("its proven versions are not known, and one may be newer, because"),
            "{refused}"
        );
        assert!(
            refused.ends_with("pin it with `sha256`, or `weir reload a --now` runs it all the same"),
            "{refused}"
        );
        // What need not be newer runs, and so does what the operator lets run.
        let free = Found { must_be_newer: false, ..signed(2, Some("1.0.0")) };
        let copy = |to: &mut dyn Write| to.write_all(&bytes(2)).map_err(|error| error.to_string());
        let chosen = device.versions.choose(&extension("a", ""), Ok(free), copy, &unread, false);
        assert_eq!((chosen.refused, chosen.hash), (None, Some(hash(2))));
        let chosen = choose(&device, 3, Some("1.0.0"), true);
        assert_eq!((chosen.refused, chosen.hash), (None, Some(hash(3))));
    }
}
