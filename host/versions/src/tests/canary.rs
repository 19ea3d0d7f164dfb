//! One of several instances tries a new version.

use super::*;

/// The configurations of an extension's instances.
fn instances(more: &str) -> Vec<Arc<ExtensionConfig>> {
    let table = format!("[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {{}}\ninstances = 3\n{more}");
    all_parsed(&table).into_iter().map(Arc::new).collect()
}

#[test]
fn the_last_of_several_instances_tries_a_new_version_while_the_others_run_the_proven_one() {
    for mut device in Device::both() {
        let all = instances("");
        // Without a proven version all run the new one.
        for config in &all {
            assert_runs(&device.run(config, 1), config, 1);
        }
        assert_eq!(device.status().canary, None);
        device.versions.accept(&a(), "it is good").unwrap();
        for round in 0..2 {
            for config in &all {
                let chosen = device.run(config, 2);
                if config.id == all[2].id {
                    assert_runs(&chosen, config, 2);
                } else {
                    assert_eq!((chosen.number, chosen.hash), (Some(1), Some(hash(1))));
                    assert_eq!((&chosen.held_back, &chosen.config.id), (&None, &config.id));
                    assert_eq!(contents(&chosen.config.component), bytes(1));
                }
            }
            let status = device.status();
            assert_eq!(
                (status.serving, status.canary, status.fallback),
                (Some(1), Some(2), Some(1)),
                "{round}"
            );
            if round == 0 {
                device.restart();
            }
        }
        let canary = device.versions.serving(&a(), Some(2)).unwrap();
        assert_eq!((canary.standing, canary.is_held_back), (Standing::Probation, false));
        let change = device.versions.accept(&a(), "it is good").unwrap();
        assert_eq!((change.version, change.serves), (2, 2));
        for config in &all {
            assert_runs(&device.run(config, 2), config, 2);
        }
        assert_eq!((device.status().serving, device.status().canary), (Some(2), None));
    }
}

#[test]
fn a_canary_that_does_not_hold_is_refused_for_all_instances() {
    for refuse in [true, false] {
        let device = Device::on_disk();
        let all = instances("");
        device.prove(&all[0], 1);
        all.iter().for_each(|config| drop(device.run(config, 2)));
        let change = match refuse {
            true => device.versions.refuse(&a(), 2, &UpdateConfig::default(), "it trapped").unwrap(),
            false => device.versions.roll_back(&a(), None, false, "an operator").unwrap(),
        };
        assert_eq!((change.version, change.serves), (2, 1));
        assert_eq!((device.status().serving, device.status().canary), (Some(1), None));
        for config in &all {
            assert_held_back(&device.run(config, 2), 1, 1);
        }
    }
}

#[test]
fn another_new_version_takes_the_place_of_the_canary_once_it_runs() {
    let device = Device::on_disk();
    let all = instances("");
    device.prove(&all[0], 1);
    device.run(&all[2], 2);
    let choose = |config, component: u8| {
        let copy = |to: &mut dyn Write| to.write_all(&bytes(component)).map_err(|error| error.to_string());
        device.versions.choose(config, Ok(hash(component)), copy, &unread, false)
    };
    assert_eq!(choose(&all[0], 3).number, Some(1));
    assert!(choose(&all[2], 3).is_canary);
    // Version 2 runs until the instance is replaced, and is judged until then. Version 3 has not run.
    assert_eq!(device.status().canary, Some(2));
    assert_eq!(device.version(2).standing, Standing::Probation);
    assert_runs(&device.run(&all[2], 3), &all[2], 3);
    assert_eq!(device.numbers(Standing::Probation), [3]);
}

#[test]
fn all_instances_change_at_once_if_they_would_get_other_messages_or_an_operator_says_so() {
    let device = Device::on_disk();
    let all = instances("");
    device.prove(&all[0], 1);
    for (more, number) in [
        ("fulfills = ['c@1']", 2),
        ("subscribes = ['t']", 3),
        ("takes = ['q']\n[queue.q]", 4),
        ("when-full = 'block'", 5),
        ("limits.inbox.messages = 7", 6),
        ("limits.inbox.bytes = '2 MiB'", 7),
        ("limits.message-size = '2 KiB'", 8),
    ] {
        for config in &instances(more) {
            assert_runs(&device.run(config, 1), config, number);
        }
        assert_eq!((device.status().serving, device.status().canary), (Some(number), None), "{more}");
    }
    let others = instances("config.level = 'low'");
    assert_eq!(device.run(&others[0], 1).number, Some(1));
    assert_runs(&device.choose(&others[0], 1, true), &others[0], 9);
    assert_eq!((device.status().serving, device.status().canary), (Some(9), None));
}

#[test]
fn what_has_not_run_as_the_canary_is_neither_accepted_nor_rolled_back_as_one() {
    let device = Device::on_disk();
    let all = instances("");
    device.prove(&all[0], 1);
    device.run(&all[0], 2);
    assert_eq!(device.status().canary, None);
    assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::NotOnProbation(a())));
    device.run(&all[2], 2);
    assert!(device.versions.is_tried_elsewhere(&all[0], hash(2)));
    assert!(!device.versions.is_tried_elsewhere(&all[2], hash(2)));
    assert!(!device.versions.is_tried_elsewhere(&all[0], hash(3)));
    // The component is gone, and the instance that tried it runs the proven one.
    let found: Result<ArtifactHash, _> = Err("`a.wasm` is not there".to_owned());
    let chosen =
        device.versions.choose(&all[2], found, |_| unreachable!("there is nothing to copy"), &unread, false);
    assert!(!device.versions.serves(&all[2], chosen.number.unwrap(), chosen.is_canary));
    assert_eq!((device.status().serving, device.status().canary), (Some(1), None));
}
