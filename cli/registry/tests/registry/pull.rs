use std::{
    fs,
    process::Stdio,
    sync::{Mutex, mpsc},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    fake::{Fake, MANIFEST, Package, answer, sha256},
    run::{Ended, Place},
};

#[test]
fn a_package_comes_whole_as_a_layout() {
    let (fake, package, place) = (Fake::honest(), Package::new(), Place::new());
    let printed = place.pull(&fake.reference()).ok();
    assert_eq!(printed, format!("{}@{}\n", fake.reference(), package.digest()));

    let read = |name: &str| fs::read(place.path().join("pulled").join(name)).unwrap();
    let index: Value = serde_json::from_slice(&read("index.json")).unwrap();
    let manifest = json!({
        "mediaType": MANIFEST,
        "digest": package.digest(),
        "size": package.bytes().len(),
        "artifactType": "application/vnd.test",
        "annotations": { "org.opencontainers.image.ref.name": "1.0" },
    });
    assert_eq!(index["manifests"], json!([manifest]));
    assert_eq!(read("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#);
    for blob in package.blobs.iter().chain([&package.bytes()]) {
        assert_eq!(&read(&format!("blobs/sha256/{}", &sha256(blob)[7..])), blob);
    }
    assert_eq!(fs::read_dir(place.path().join("pulled/blobs/sha256")).unwrap().count(), 4);
    assert_eq!(place.names(), ["pulled"]);
}

#[test]
fn a_digest_alone_names_a_package() {
    let (fake, place) = (Fake::honest(), Place::new());
    let pinned = format!("{}/a/b@{}", fake.authority, Package::new().digest());
    assert_eq!(place.pull(&pinned).ok(), format!("{pinned}\n"));
    let index = fs::read_to_string(place.path().join("pulled/index.json")).unwrap();
    assert!(!index.contains("ref.name"), "{index}");
}

#[test]
fn a_manifest_may_leave_its_kind_to_the_registry_and_the_registry_to_the_manifest() {
    let mut package = Package::new();
    for is_typed in [true, false] {
        if !is_typed {
            package.manifest.as_object_mut().unwrap().remove("mediaType");
        }
        let bytes = package.bytes();
        let fake = Fake::with(package.held(), move |request, stream| {
            let is_manifest = is_typed && request.target.contains("/manifests/");
            is_manifest.then(|| answer(stream, 200, "", &bytes))
        });
        assert!(Place::new().pull(&fake.reference()).ok().contains(&package.digest()));
    }
}

#[test]
fn what_is_at_the_place_stays_and_no_registry_is_asked() {
    let (fake, place) = (Fake::honest(), Place::new());
    fs::write(place.path().join("pulled"), "mine").unwrap();
    place.pull(&fake.reference()).failed(1, "`pulled` is there already");
    assert_eq!(fs::read(place.path().join("pulled")).unwrap(), b"mine");
    place.run(&["pull", &fake.reference(), "no/pulled"]).failed(1, "cannot write to `no`");
    place.run(&["pull", &fake.reference(), ".."]).failed(1, "`..` is there already");
    assert!(fake.seen().is_empty());
}

#[test]
fn what_comes_to_the_place_meanwhile_stays() {
    let place = Place::new();
    let mine = place.path().join("pulled");
    let put = mine.clone();
    let fake = Fake::with(Package::new().held(), move |request, _| {
        if request.target.contains("/blobs/") && !put.exists() {
            fs::create_dir(&put).unwrap();
            fs::write(put.join("mine"), "").unwrap();
        }
        None
    });
    place.pull(&fake.reference()).failed(1, "cannot write `pulled`");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 1);
    assert_eq!(place.names(), ["pulled"]);
}

#[test]
fn a_signal_leaves_nothing() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP")] {
        let (begun, has_begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (begun, ended) = (Mutex::new(begun), Mutex::new(ended));
        let fake = Fake::with(Package::new().held(), move |request, stream| {
            request.target.contains("/blobs/").then(|| {
                write!(stream, "HTTP/1.1 200 S\r\nContent-Length: 2\r\n\r\n{{")?;
                begun.lock().unwrap().send(()).unwrap();
                let _test_is_over = ended.lock().unwrap().recv();
                Ok(())
            })
        });
        let place = Place::new();
        let mut command = place.command(&["pull", &fake.reference(), "pulled"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        has_begun.recv().unwrap();
        assert_eq!(place.names().len(), 1);
        kill_process(Pid::from_child(&child), signal).unwrap();
        Ended::of(child.wait_with_output().unwrap()).failed(1, &format!("ended by {name}"));
        assert!(place.names().is_empty());
        drop(end);
    }
}

#[test]
fn wrong_arguments_end_with_2() {
    let place = Place::new();
    for reference in ["echo", "host.test/Echo", "host.test/a@sha256:0", "host.test/a:.."] {
        assert_eq!(place.pull(reference).code, 2, "{reference}");
    }
    let both = ["tags", "host.test/a", "--plain-http", "--ca-file", "x"];
    assert_eq!(place.run(&both).code, 2);
    for (plain, code) in [("0", 1), ("1", 2)] {
        let mut command = place.command(&["tags", "host.test/a", "--ca-file", "none.pem"]);
        assert_eq!(command.env("WEIR_REGISTRY_PLAIN_HTTP", plain).status().unwrap().code(), Some(code));
    }
}
