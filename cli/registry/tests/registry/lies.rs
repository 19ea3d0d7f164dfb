//! What a registry may do wrong, and the words for it. Nothing is left of any of it.

use std::io;

use serde_json::{Value, json};

use crate::{
    fake::{Fake, Held, MANIFEST, Package, Stream, answer, answer_manifest, sha256},
    run::Place,
};

#[track_caller]
fn refused(fake: &Fake, reference: &str, code: i32, text: &str) {
    let place = Place::new();
    place.pull(reference).failed(code, text);
    assert!(place.names().is_empty(), "{:?} is left of `{text}`: {:?}", place.names(), fake.seen().len());
}

/// The manifest is this in place of an honest one.
#[track_caller]
fn manifest_is_refused(package: &Package, text: &str) {
    let fake = Fake::with(package.held(), |_, _| None);
    refused(&fake, &fake.reference(), 1, text);
}

/// A registry that answers requests for blobs, or else for manifests, in this way.
fn lying(
    about: &'static str,
    how: impl Fn(&mut dyn Stream) -> io::Result<()> + Send + Sync + 'static,
) -> Fake {
    Fake::with(Package::new().held(), move |request, stream| {
        request.target.contains(about).then(|| how(stream))
    })
}

#[test]
fn a_manifest_that_differs_from_its_digest() {
    let other = Package::new().set("/annotations/kept", json!("other"));
    let mut held = other.held();
    held.manifests.insert(Package::new().digest(), other.bytes());
    let fake = Fake::with(held, |_, _| None);
    let pinned = format!("{}/a/b:1.0@{}", fake.authority, Package::new().digest());
    refused(&fake, &pinned, 1, "sent a manifest with the digest");

    let fake = lying("/manifests/", |stream| {
        let headers = format!("Content-Type: {MANIFEST}\r\nDocker-Content-Digest: {}\r\n", sha256(b""));
        answer(stream, 200, &headers, &Package::new().bytes())
    });
    refused(&fake, &fake.reference(), 1, "says that its manifest has the digest");
}

#[test]
fn a_manifest_of_a_kind_that_is_not_taken() {
    let typed = |media_type: &'static str| {
        lying("/manifests/", move |stream| answer_manifest(stream, media_type, &Package::new().bytes()))
    };
    let fake = typed("application/vnd.oci.image.index.v1+json");
    refused(&fake, &fake.reference(), 1, "the manifest is a list of several");
    let fake = typed("text/html");
    refused(&fake, &fake.reference(), 1, "has the media type `text/html`");

    let set = |pointer: &str, value: Value| Package::new().set(pointer, value);
    let index = set("/mediaType", json!("application/vnd.oci.image.index.v1+json"));
    manifest_is_refused(&index, "the manifest is a list of several");
    let docker = set("/mediaType", json!("application/vnd.docker.distribution.manifest.v2+json"));
    manifest_is_refused(&docker, "has the media type `application/vnd.docker.");
    manifest_is_refused(&set("/schemaVersion", json!(1)), "has the schema version 1");
}

#[test]
fn a_manifest_that_is_none() {
    let set = |pointer: &str, value: Value| Package::new().set(pointer, value);
    let unread = "the manifest cannot be read";
    for body in ["", "{", "[]", "\"a\"", "{}", "\u{1b}[2J"] {
        let fake = lying("/manifests/", move |stream| answer_manifest(stream, MANIFEST, body.as_bytes()));
        refused(&fake, &fake.reference(), 1, unread);
    }
    for digest in ["sha512:00", "sha256:../../../../etc/passwd", "", &sha256(b"").to_uppercase()] {
        manifest_is_refused(&set("/layers/0/digest", json!(digest)), unread);
    }
    for size in [json!(-1), json!(1.5), json!("1"), Value::Null] {
        manifest_is_refused(&set("/layers/0/size", size), unread);
    }
    let deep = "[".repeat(100_000);
    let fake = lying("/manifests/", move |stream| answer_manifest(stream, MANIFEST, deep.as_bytes()));
    refused(&fake, &fake.reference(), 1, unread);
}

#[test]
fn more_than_is_taken() {
    let package = Package::new();
    let many = json!(vec![package.manifest["layers"][0].clone(); 65]);
    manifest_is_refused(&package.clone().set("/layers", many), "has 65 layers");
    let large = package.clone().set("/layers/0/size", json!(256 << 20));
    manifest_is_refused(&large, "at most 268435456 are taken");
    let overflow = package.clone().set("/layers/0/size", json!(u64::MAX));
    manifest_is_refused(&overflow.set("/layers/1/size", json!(u64::MAX)), "at most 268435456 are taken");
    let twice = package.clone().set("/layers/0/digest", package.manifest["config"]["digest"].clone());
    manifest_is_refused(&twice, "twice, with different sizes");

    let (fake, place) = (Fake::honest(), Place::new());
    let small = ["pull", &fake.reference(), "pulled", "--max-size", "1 KiB"];
    place.run(&small).failed(1, "at most 1024 are taken: `--max-size` would allow more");
}

#[test]
fn a_blob_that_is_not_what_the_manifest_says() {
    let package = Package::new();
    let with = |blob: &[u8]| {
        let mut held = package.held();
        held.blobs.insert(sha256(&package.blobs[1]), blob.to_vec());
        Fake::with(held, |_, _| None)
    };
    let mut flipped = package.blobs[1].clone();
    flipped[3] ^= 1;
    let cases: [(&[u8], &str); 4] = [
        (&flipped, "in place of"),
        (&package.blobs[1][..5], "sent 5 of the 19 bytes"),
        (b"", "sent 0 of the 19 bytes"),
        (&[0; 20], "sent more than the 19 bytes"),
    ];
    for (blob, text) in cases {
        let fake = with(blob);
        refused(&fake, &fake.reference(), 1, text);
    }
    let fake = lying("/blobs/", |stream| write!(stream, "HTTP/1.1 200 S\r\nContent-Length: 2\r\n\r\n{{"));
    refused(&fake, &fake.reference(), 1, "broke off");
}

#[test]
fn what_never_ends() {
    let forever = |stream: &mut dyn Stream, head: &str, piece: &[u8]| -> io::Result<()> {
        stream.write_all(head.as_bytes())?;
        loop {
            stream.write_all(piece)?;
        }
    };
    let endless =
        |about| lying(about, move |stream| forever(stream, "HTTP/1.1 200 S\r\n\r\n", &[b'{'; 65536]));
    let fake = endless("/manifests/");
    refused(&fake, &fake.reference(), 1, "sent a manifest of more than 4194304 bytes");
    let fake = endless("/blobs/");
    refused(&fake, &fake.reference(), 1, "sent more than the ");
    let fake = lying("/manifests/", move |stream| forever(stream, "HTTP/1.1 200 S\r\n", b"A: b\r\n"));
    refused(&fake, &fake.reference(), 1, "did not answer as a registry does");
    let fake = lying("/manifests/", move |stream| forever(stream, "HTTP/1.1 200 S\r\nA: ", &[b'b'; 4096]));
    refused(&fake, &fake.reference(), 1, "did not answer as a registry does");
    let fake = lying("/manifests/", move |stream| forever(stream, "HTTP/1.1 500 S\r\n\r\n", &[b'b'; 4096]));
    refused(&fake, &fake.reference(), 1, "answered `500");
    let fake = lying("/manifests/", move |stream| forever(stream, "", b"HTTP/1.1 100 S\r\n\r\n"));
    let place = Place::new();
    let idle = ["pull", &fake.reference(), "pulled", "--idle-timeout", "300ms"];
    place.run(&idle).failed(6, "did not answer within 300ms");
    assert!(place.names().is_empty());
    let fake = lying("/", |stream| answer(stream, 302, "Location: /again\r\n", b""));
    refused(&fake, &fake.reference(), 1, "redirects more than 5 times");
    assert_eq!(fake.seen().len(), 6);
}

#[test]
fn a_registry_that_says_nothing_is_given_up() {
    // The connection stays open until the client has gone.
    let silent = |about, head: &'static str| {
        lying(about, move |stream| {
            stream.write_all(head.as_bytes())?;
            stream.read(&mut [0]).map(|_| ())
        })
    };
    let cases = [
        ("/manifests/", "", "did not answer within 300ms"),
        ("/blobs/", "HTTP/1.1 200 S\r\n\r\n{", "sent nothing for 300ms"),
    ];
    for (about, head, text) in cases {
        let (fake, place) = (silent(about, head), Place::new());
        let idle = ["pull", &fake.reference(), "pulled", "--idle-timeout", "300ms"];
        place.run(&idle).failed(6, text);
        let late = ["pull", &fake.reference(), "pulled", "--timeout", "300ms"];
        place.run(&late).failed(6, "did not end within 300ms");
        assert!(place.names().is_empty());
    }
}

#[test]
fn what_is_not_there() {
    let fake = Fake::honest();
    let missing = format!("{}/a/b:2.0", fake.authority);
    refused(&fake, &missing, 4, "it is not known");
    refused(&fake, &format!("{}/c:1.0", fake.authority), 4, "NAME_UNKNOWN");
    let fake = Fake::with(Held { blobs: [].into(), ..Package::new().held() }, |_, _| None);
    refused(&fake, &fake.reference(), 4, "has no blob `sha256:");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&fake, &format!("{gone}/a/b:1.0"), 3, "cannot reach");
}

#[test]
fn the_words_of_a_registry_cannot_control_a_terminal() {
    let fake = lying("/manifests/", |stream| {
        let body = json!({ "errors": [{ "code": "\u{1b}[2J\n", "message": "x".repeat(10_000) }] });
        answer(stream, 503, "", body.to_string().as_bytes())
    });
    let ended = Place::new().pull(&fake.reference());
    assert!(!ended.stderr.contains('\u{1b}') && ended.stderr.len() < 1000, "{ended:?}");
    ended.failed(1, "answered `503 Service Unavailable`: \\u{1b}[2J\\n");
    let fake = lying("/", |stream| stream.write_all(b"SSH-2.0-OpenSSH\r\n"));
    refused(&fake, &fake.reference(), 1, "did not answer as a registry does");
}
