//! Several instances: what changes the data is no canary.

use super::*;

/// Chooses for component 10 of version 10.0.0, which says that this version can read its data.
fn choose_with(home: &Home, since: &str) -> Chosen {
    let form = Form::new(Some("10.0.0"), Some(since)).unwrap();
    let look: Look<'_> = &|_| Ok((hash(10), form.clone()));
    let copy = |to: &mut dyn Write| to.write_all(&bytes(10)).map_err(|error| error.to_string());
    home.device.versions.choose(&home.config, Ok(hash(10)), copy, look, false)
}

#[test]
fn what_all_versions_that_come_back_can_read_changes_beside_other_instances() {
    let home = Home::with_room(1 << 20);
    home.serve(9);
    home.accept();
    // It writes what version 9 can read, and says so.
    let chosen = choose_with(&home, "9.0.0");
    let crossing = || home.device.versions.crossing(&home.config, chosen.number, chosen.hash);
    assert_eq!(crossing(), Crossing::Noted);
    home.cross(2).unwrap();
    assert_eq!((crossing(), home.kept()), (Crossing::Nothing, 0));
    assert_eq!(home.status().since.as_deref(), Some("9.0.0"));
}

#[test]
fn a_version_that_changes_the_data_is_no_canary_and_one_that_only_says_so_is() {
    for (since, is_canary) in [("9.0.0", true), ("10.0.0", false)] {
        let mut home = Home::with_room(1 << 20);
        let config = Arc::make_mut(&mut home.config);
        config.canary = Some("a".parse().unwrap());
        config.instances = 2;
        config.stanza = None;
        home.serve(9);
        home.accept();
        let chosen = choose_with(&home, since);
        assert_eq!((chosen.number, chosen.is_canary), (Some(2), is_canary), "{since}");
        let crossing = home.device.versions.crossing(&home.config, chosen.number, chosen.hash);
        assert_eq!(crossing == Crossing::Alone, !is_canary, "{since}");
        // An instance that starts after the change finds the same.
        home.cross(2).unwrap();
        assert_eq!(choose_with(&home, since).is_canary, is_canary, "{since}");
    }
}
