use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use crate::{
    fake::{Fake, Held, Package, answer, sha256},
    run::Place,
};

fn place_with_layout() -> Place {
    let place = Place::new();
    Package::new().write(&place.path().join("made"));
    place
}

fn empty() -> Fake {
    Fake::with(Held::default(), |_, _| None)
}

#[test]
fn what_is_pushed_is_pulled_again_and_blobs_that_are_there_are_not_sent() {
    let (fake, place, package) = (empty(), place_with_layout(), Package::new());
    let pinned = format!("{}@{}\n", fake.reference(), package.digest());
    assert_eq!(place.run(&["push", "made", &fake.reference()]).ok(), pinned);
    assert_eq!(place.pull(&fake.reference()).ok(), pinned);
    let list = |name: &str| {
        let entries = fs::read_dir(place.path().join(name).join("blobs/sha256")).unwrap();
        let read = |path: std::path::PathBuf| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap());
        let mut blobs: Vec<_> = entries.map(|entry| read(entry.unwrap().path())).collect();
        blobs.sort();
        blobs
    };
    assert_eq!(list("made"), list("pulled"));

    let before = fake.seen().len();
    let other = format!("{}/a/b:2.0", fake.authority);
    place.run(&["push", "pulled", &other]).ok();
    let again = fake.seen().split_off(before);
    assert!(again.iter().all(|request| request.method == "HEAD" || request.target.contains("/manifests/")));
    assert_eq!(fake.held.lock().unwrap().manifests["2.0"], package.bytes());
    assert_eq!(place.run(&["tags", &format!("{}/a/b", fake.authority)]).ok(), "1.0\n2.0\n");
}

/// Makes a tar of this directory by the machine's own program.
fn pack(place: &Place, of: &str, arguments: &[&str]) {
    let mut tar = Command::new("tar");
    tar.current_dir(place.path()).args(["-cf", "made.tar", "-C", of]).args(arguments);
    assert!(tar.status().unwrap().success());
}

#[test]
fn a_tar_is_pushed_as_its_directory_is() {
    let (fake, place) = (empty(), place_with_layout());
    pack(&place, "made", &["."]);
    let pushed = place.run(&["push", "made.tar", &fake.reference()]).ok();
    assert_eq!(pushed, place.pull(&fake.reference()).ok());
    assert_eq!(fake.held.lock().unwrap().manifests["1.0"], Package::new().bytes());
}

#[test]
fn a_tar_that_leads_elsewhere_is_refused_before_a_registry_is_asked() {
    let (fake, place) = (empty(), place_with_layout());
    let outside = place.path().join("made/outside");
    std::os::unix::fs::symlink("/etc/passwd", &outside).unwrap();
    pack(&place, "made", &["."]);
    place.run(&["push", "made.tar", &fake.reference()]).failed(1, "it is a symbolic link");
    fs::remove_file(&outside).unwrap();
    pack(&place, "made", &["--transform=s,oci-layout,../oci-layout,", "."]);
    place.run(&["push", "made.tar", &fake.reference()]).failed(1, "its path has a `..`");
    fs::write(place.path().join("made.tar"), "no tar").unwrap();
    place.run(&["push", "made.tar", &fake.reference()]).failed(1, "is no tar, or is damaged");
    assert!(fake.seen().is_empty());
}

#[test]
fn a_faulty_layout_is_refused_before_a_registry_is_asked() {
    let package = Package::new();
    let blob = format!("blobs/sha256/{}", &sha256(&package.blobs[1])[7..]);
    let manifest = format!("blobs/sha256/{}", &package.digest()[7..]);
    let index = |manifests: &str| format!(r#"{{ "schemaVersion": 2, "manifests": {manifests} }}"#);
    let named = format!(
        r#"{{ "mediaType": "{}", "digest": "{}", "size": 1 }}"#,
        crate::fake::MANIFEST,
        package.digest()
    );
    let (none, two, other) =
        (index("[]"), index(&format!("[{named},{named}]")), index(&named.replace("manifest", "index")));
    let cases: [(&str, Option<&str>, &str); 11] = [
        (&blob, Some("\0asm of b component"), "cannot take the blob"),
        (&blob, Some("short"), "it has 5 bytes, and the manifest says 19"),
        (&blob, None, "cannot take the blob"),
        (&manifest, Some("{}"), "the manifest is `sha256:"),
        (&manifest, None, "cannot read the manifest"),
        ("index.json", Some(&none), "names 0 manifests, and only one is taken"),
        ("index.json", Some(&two), "names 2 manifests, and only one is taken"),
        ("index.json", Some(&format!("[{other}]")), "`index.json` cannot be read"),
        ("index.json", None, "cannot read `made/index.json`"),
        ("oci-layout", Some(r#"{ "imageLayoutVersion": "2.0.0" }"#), "the layout has the version `2.0.0`"),
        ("oci-layout", None, "cannot read `made/oci-layout`"),
    ];
    let fake = empty();
    for (name, text, error) in cases {
        let place = place_with_layout();
        let path = place.path().join("made").join(name);
        fs::remove_file(&path).unwrap();
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        place.run(&["push", "made", &fake.reference()]).failed(1, error);
    }
    let place = place_with_layout();
    fs::remove_file(place.path().join("made").join(&blob)).unwrap();
    let pipe = Command::new("mkfifo").arg(place.path().join("made").join(&blob)).status().unwrap();
    assert!(pipe.success());
    place.run(&["push", "made", &fake.reference()]).failed(1, "it is not a regular file");
    let pinned = format!("{}@{}", fake.reference(), sha256(b""));
    place_with_layout().run(&["push", "made", &pinned]).failed(1, "the reference pins");
    assert!(fake.seen().is_empty());
}

#[test]
fn a_registry_that_does_not_take_it_is_named() {
    let place = place_with_layout();
    let fails = |about: &'static str, status: u16, headers: &'static str| {
        Fake::with(Held::default(), move |request, stream| {
            request.line().contains(about).then(|| answer(stream, status, headers, b""))
        })
    };
    let cases = [
        (fails("HEAD ", 500, ""), 1, "answered `500"),
        (fails("POST ", 404, ""), 4, "has no repository"),
        (fails("POST ", 202, ""), 1, "names the address ``"),
        (fails("POST ", 202, "Location: ftp://a/\r\n"), 1, "neither `https` nor `http`"),
        (fails("POST ", 405, ""), 1, "answered `405"),
        (fails("PUT /v2/a/b/blobs", 400, ""), 1, "answered `400"),
        (fails("PUT /v2/a/b/blobs", 307, "Location: /x\r\n"), 1, "answered `307"),
        (fails("PUT /v2/a/b/manifests", 403, ""), 5, "does not allow it"),
        (fails("PUT /v2/a/b/manifests", 201, "Docker-Content-Digest: x\r\n"), 1, "kept the manifest as `x`"),
    ];
    for (fake, code, text) in cases {
        place.run(&["push", "made", &fake.reference()]).failed(code, text);
    }
}

/// A registry that holds nothing. Once the push has begun, this happens to the file of the component.
fn while_pushed(place: &Place, happens: impl Fn(&Path) + Send + Sync + 'static) -> Fake {
    let component = place.path().join("made/blobs/sha256").join(&sha256(&Package::new().blobs[1])[7..]);
    Fake::with(Held::default(), move |request, _| {
        if request.method == "POST" {
            happens(&component);
        }
        None
    })
}

#[test]
fn what_takes_the_place_of_a_blob_is_not_sent() {
    let (place, component) = (place_with_layout(), Package::new().blobs[1].clone());
    fs::write(place.path().join("secret"), "a secret of the user").unwrap();
    let secret = place.path().join("secret");
    let fake = while_pushed(&place, move |path| {
        let _gone = fs::remove_file(path);
        symlink(&secret, path).unwrap();
    });
    place.run(&["push", "made", &fake.reference()]).ok();
    assert_eq!(fake.held.lock().unwrap().blobs[&sha256(&component)], component);
    assert!(fake.seen().iter().all(|request| !request.body.starts_with(b"a secret")));
}

#[test]
fn a_blob_that_changes_while_it_is_sent_does_not_arrive() {
    let large = vec![8; 300_000];
    let contents: [&[u8]; 3] = [b"\0asm of b component", b"short", &large];
    for content in contents {
        let (place, content) = (place_with_layout(), content.to_vec());
        let fake = while_pushed(&place, move |path| fs::write(path, &content).unwrap());
        let ended = place.run(&["push", "made", &fake.reference(), "--timeout", "20s"]);
        ended.failed(1, "has changed meanwhile");
        let held = fake.held.lock().unwrap();
        assert!(held.manifests.is_empty() && !held.blobs.values().any(|blob| blob.starts_with(b"\0asm")));
    }
}

#[test]
fn a_registry_that_takes_nothing_more_is_given_up() {
    let large = Package { blobs: vec![vec![1; 32 << 20]], manifest: Package::new().manifest };
    let config = serde_json::json!({ "mediaType": "a", "digest": sha256(&large.blobs[0]), "size": 32 << 20 });
    let large = large.set("/config", config).set("/layers", serde_json::json!([]));
    let place = Place::new();
    large.write(&place.path().join("made"));
    // It accepts connections, and reads as far as the headers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stuck = format!("Location: http://{}/upload\r\n", listener.local_addr().unwrap());
    let fake = Fake::with(Held::default(), move |request, stream| {
        (request.method == "POST").then(|| answer(stream, 202, &stuck, b""))
    });
    let push = ["push", "made", &fake.reference(), "--idle-timeout", "500ms"];
    place.run(&push).failed(6, "did not answer within 500ms");
}
