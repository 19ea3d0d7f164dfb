//! Orders of an operator: to go back, and to accept.

use super::*;

#[test]
fn an_operator_rolls_back_to_the_version_before_or_to_any_proven_one() {
    for mut device in Device::both() {
        let config = extension("a", "");
        (1..=3).for_each(|component| assert_eq!(device.prove(&config, component), u64::from(component)));
        device.fail(&config, 4);
        device.run(&config, 3);
        let roll_back = |to| device.versions.roll_back(&a(), to, false, "it is too loud");
        assert_eq!(roll_back(Some(9)), Err(VersionError::Unknown(a(), 9)));
        assert_eq!(roll_back(Some(4)), Err(VersionError::NotProven(a(), 4)));
        assert_eq!(device.numbers(Standing::Proven), [3, 2, 1]);
        let change = roll_back(None).unwrap();
        assert_eq!((change.version, change.serves, change.standing), (3, 2, Standing::Refused));
        device.versions.save(&a()).unwrap();
        device.restart();
        let chosen = device.run(&config, 3);
        assert_held_back(&chosen, 2, 2);
        assert_eq!(chosen.held_back.unwrap(), "version 3 was refused: it is too loud");
        assert_eq!(device.versions.roll_back(&a(), Some(1), false, "").unwrap().serves, 1);
        assert_held_back(&device.run(&config, 3), 1, 1);
        let nothing = device.versions.roll_back(&a(), None, false, "");
        assert_eq!(nothing, Err(VersionError::NothingBefore(a())));
        assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::NotOnProbation(a())));
        assert_eq!(device.numbers(Standing::Refused), [4, 3, 2]);
    }
}

#[test]
fn a_version_on_probation_is_rolled_back_and_cannot_be_accepted_then() {
    for device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.run(&config, 2);
        assert_eq!(device.versions.roll_back(&a(), None, false, "no").unwrap().serves, 1);
        assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::NotOnProbation(a())));
        assert_eq!(device.versions.refuse(&a(), 2, &UpdateConfig::default(), ""), None);
        assert_held_back(&device.run(&config, 2), 1, 1);
    }
}

#[test]
fn an_order_that_fails_changes_nothing() {
    for device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.prove(&config, 2);
        device.run(&config, 3);
        // Version 4 takes the place of version 3 on probation, and does not serve yet.
        let copy = |to: &mut dyn Write| to.write_all(&bytes(4)).map_err(|error| error.to_string());
        device.versions.choose(&config, Ok(hash(4)), copy, &unread, false);
        let before = device.status();
        if device.versions.roll_back(&a(), Some(1), false, "no").is_err() {
            assert_eq!(device.status(), before);
        }
    }
}
