use std::{fs, os::unix::fs::PermissionsExt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::{
    fake::{Fake, Held, Package, answer},
    run::{Ended, Place},
};

/// Pulls without TLS, and with credentials all the same.
fn pull(place: &Place, reference: &str) -> Ended {
    place.run(&["pull", reference, "pulled", "--timeout", "20s", "--plain-http"])
}

/// A registry that wants this header, and else answers with that challenge.
fn guarded(wanted: String, challenge: String) -> Fake {
    Fake::with(Package::new().held(), move |request, stream| {
        let asks = format!("WWW-Authenticate: {challenge}\r\n");
        (request.authorization() != wanted).then(|| answer(stream, 401, &asks, b""))
    })
}

fn basic(both: &str) -> String {
    format!("Basic {}", STANDARD.encode(both))
}

/// Writes credentials to a file of docker's or podman's.
fn keep(place: &Place, file: &str, host: &str, both: &str) {
    let path = place.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let auths = json!({ "auths": { host: { "auth": STANDARD.encode(both) } } });
    fs::write(path, auths.to_string()).unwrap();
}

#[test]
fn a_password_is_found_where_docker_and_podman_keep_it() {
    for file in [".docker/config.json", ".config/containers/auth.json"] {
        let fake = guarded(basic("me:secret"), "Basic realm=\"r\"".into());
        let place = Place::new();
        pull(&place, &fake.reference()).failed(5, "no file has any");
        keep(&place, file, &fake.authority, "me:wrong");
        pull(&place, &fake.reference()).failed(5, "the credentials are not enough");
        keep(&place, file, &fake.authority, "me:secret");
        let before = fake.seen().len();
        pull(&place, &fake.reference()).ok();
        // It is sent to who asks for it, and then without being asked again.
        let sent: Vec<_> =
            fake.seen().split_off(before).iter().map(|it| it.authorization().to_owned()).collect();
        assert_eq!(sent[..2], ["".to_owned(), basic("me:secret")]);
        assert_eq!(sent.len(), 5);
    }
}

#[test]
fn a_named_file_counts_alone() {
    let fake = guarded(basic("me:secret"), "Basic realm=\"r\"".into());
    let place = Place::new();
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    keep(&place, "other.json", "other.test", "me:secret");
    let pull =
        |file: &str| place.run(&["pull", &fake.reference(), "pulled", "--auth-file", file, "--plain-http"]);
    pull("other.json").failed(5, "no file has any");
    pull("none.json").failed(1, "cannot read the credentials in `none.json`");
    fs::write(place.path().join("other.json"), "secret").unwrap();
    pull("other.json").failed(1, "cannot take the credentials in `other.json`: it is not JSON");
    keep(&place, "other.json", &fake.authority, "me:secret");
    let mut command = place.command(&["pull", &fake.reference(), "pulled", "--plain-http"]);
    assert!(command.env("REGISTRY_AUTH_FILE", "other.json").status().unwrap().success());
}

#[test]
fn who_listens_on_this_machine_gets_no_credentials_without_tls_unless_the_user_says_so() {
    let place = Place::new();
    let basic_one = guarded(basic("me:secret"), "Basic realm=\"r\"".into());
    let (of_tokens, service) = with_service();
    for fake in [&basic_one, &of_tokens] {
        keep(&place, ".docker/config.json", &fake.authority, "me:secret");
        let arguments = ["pull", &fake.reference(), "pulled"];
        let ended = place.run(&arguments);
        if fake.authority == basic_one.authority {
            ended.failed(5, "it wants credentials, and without TLS they are sent only with `--plain-http`");
        } else {
            // A token for everybody is another matter.
            ended.ok();
            fs::remove_dir_all(place.path().join("pulled")).unwrap();
        }
        let sent = fake.seen().into_iter().chain(service.seen());
        assert!(sent.into_iter().all(|request| !request.authorization().starts_with("Basic")));
        for (plain, is_pulled) in [("0", false), ("1", true)] {
            let mut command = place.command(&arguments);
            let ended = Ended::of(command.env("WEIR_REGISTRY_PLAIN_HTTP", plain).output().unwrap());
            assert_eq!(ended.code == 0, is_pulled || fake.authority == of_tokens.authority, "{ended:?}");
            let _none = fs::remove_dir_all(place.path().join("pulled"));
        }
    }
    assert_eq!(service.seen().last().unwrap().authorization(), basic("me:secret"));
}

#[test]
fn credentials_do_not_follow_to_another_host() {
    let elsewhere = Fake::honest();
    let to = format!("http://{}", elsewhere.authority);
    let fake = Fake::with(Package::new().held(), move |request, stream| {
        if request.authorization().is_empty() {
            return Some(answer(stream, 401, "WWW-Authenticate: Basic realm=\"r\"\r\n", b""));
        }
        let there = format!("Location: {to}{}\r\n", request.target);
        request.target.contains("/blobs/").then(|| answer(stream, 307, &there, b""))
    });
    let place = Place::new();
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    pull(&place, &fake.reference()).ok();
    assert_eq!(elsewhere.seen().len(), 3);
    assert!(elsewhere.seen().iter().all(|request| request.authorization().is_empty()));

    // Nor does a challenge from there bring them.
    let fake = Fake::with(Held::default(), {
        let asking = guarded("never".into(), "Basic realm=\"r\"".into());
        move |request, stream| {
            let there = format!("Location: http://{}/x\r\n", asking.authority);
            assert!(asking.seen().iter().all(|request| request.authorization().is_empty()));
            request.target.contains("/manifests/").then(|| answer(stream, 307, &there, b""))
        }
    });
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    fs::remove_dir_all(place.path().join("pulled")).unwrap();
    pull(&place, &fake.reference()).failed(5, "does not allow it");
    assert_eq!(fake.seen().len(), 1);
}

#[test]
fn an_upload_to_another_host_has_no_credentials() {
    let elsewhere = Fake::with(Held::default(), |_, stream| Some(answer(stream, 201, "", b"")));
    let to = format!("Location: http://{}/there\r\n", elsewhere.authority);
    let fake = Fake::with(Held::default(), move |request, stream| {
        if request.authorization().is_empty() {
            return Some(answer(stream, 401, "WWW-Authenticate: Basic realm=\"r\"\r\n", b""));
        }
        (request.method == "POST").then(|| answer(stream, 202, &to, b""))
    });
    let place = Place::new();
    Package::new().write(&place.path().join("made"));
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    place.run(&["push", "made", &fake.reference(), "--plain-http"]).ok();
    let sent = elsewhere.seen();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|request| request.authorization().is_empty() && !request.body.is_empty()));
}

/// A service for tokens, and a registry that wants its token.
fn with_service() -> (Fake, Fake) {
    let service =
        Fake::with(Held::default(), |_, stream| Some(answer(stream, 200, "", br#"{ "token": "t0ken" }"#)));
    let challenge = format!("Bearer realm=\"http://{}/t\",service=\"s 1\"", service.authority);
    (guarded("Bearer t0ken".into(), challenge), service)
}

#[test]
fn a_token_comes_from_the_service_that_the_registry_names() {
    let (fake, service) = with_service();
    let place = Place::new();
    pull(&place, &fake.reference()).ok();
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    place.run(&["push", "pulled", &fake.reference(), "--plain-http"]).ok();
    let [pull, push] = &service.seen()[..] else { panic!("{:?}", service.seen()) };
    assert_eq!(pull.line(), "GET /t?service=s%201&scope=repository%3Aa%2Fb%3Apull");
    assert_eq!(pull.authorization(), "");
    assert_eq!(push.line(), "GET /t?service=s%201&scope=repository%3Aa%2Fb%3Apull%2Cpush");
    assert_eq!(push.authorization(), basic("me:secret"));
    assert!(fake.seen().iter().all(|request| !request.authorization().starts_with("Basic")));
}

#[test]
fn a_token_of_an_identity_is_exchanged_for_another() {
    let (fake, service) = with_service();
    let place = Place::new();
    let auths = json!({ "auths": { &fake.authority: { "identitytoken": "id&x" } } });
    fs::write(place.path().join("auth.json"), auths.to_string()).unwrap();
    place.run(&["pull", &fake.reference(), "pulled", "--auth-file", "auth.json", "--plain-http"]).ok();
    let [asked] = &service.seen()[..] else { panic!("{:?}", service.seen()) };
    assert_eq!((asked.line(), asked.authorization()), ("POST /t".into(), ""));
    let body = String::from_utf8(asked.body.clone()).unwrap();
    assert!(body.starts_with("grant_type=refresh%5Ftoken&service=s%201&client_id="), "{body}");
    assert!(body.ends_with("&scope=repository%3Aa%2Fb%3Apull&refresh_token=id%26x"), "{body}");
}

#[test]
fn a_service_for_tokens_that_gives_none_is_refused() {
    let place = Place::new();
    let giving = |status, body: &'static [u8]| {
        let service = Fake::with(Held::default(), move |_, stream| Some(answer(stream, status, "", body)));
        guarded("never".into(), format!("Bearer realm=\"http://{}/t\"", service.authority))
    };
    let large = &*Vec::leak(vec![b' '; 300_000]);
    let cases: [(u16, &'static [u8], i32, &str); 6] = [
        (200, b"{}", 1, "did not answer with a token"),
        (200, b"{ \"token\": \"a\\nb\" }", 1, "did not answer with a token"),
        (200, large, 1, "sent a token of more than 262144 bytes"),
        (403, b"", 5, "gives no token without credentials"),
        (302, b"", 1, "answered 302 in place of a token"),
        (200, b"{ \"token\": \"other\" }", 5, "does not allow it"),
    ];
    for (status, body, code, text) in cases {
        pull(&place, &giving(status, body).reference()).failed(code, text);
    }
    let fake = guarded("never".into(), "Bearer realm=\"http://192.0.2.1/t\"".into());
    keep(&place, ".docker/config.json", &fake.authority, "me:secret");
    pull(&place, &fake.reference()).failed(1, "wants credentials sent to `http://192.0.2.1` without TLS");
    let fake = guarded("never".into(), "Digest realm=\"r\"".into());
    pull(&place, &fake.reference()).failed(5, "credentials of a kind that this program does not have");
    assert_eq!(place.names(), [".docker"]);
}

#[test]
fn a_helper_of_docker_has_the_credentials() {
    let fake = guarded(basic("me:secret"), "Basic realm=\"r\"".into());
    let place = Place::new();
    let config = json!({ "credHelpers": { &fake.authority: "test" } });
    fs::write(place.path().join("auth.json"), config.to_string()).unwrap();
    let pull =
        || place.run(&["pull", &fake.reference(), "pulled", "--auth-file", "auth.json", "--plain-http"]);
    let missing = "cannot run `docker-credential-test`";
    pull().failed(1, missing);
    let helper = place.path().join("docker-credential-test");
    let write = |script: &str| {
        fs::write(&helper, format!("#!/bin/sh\ncat > asked\n{script}\n")).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("echo 'credentials not found in native keychain'; exit 1");
    pull().failed(5, "no file has any");
    write("echo 'it is locked'; exit 1");
    pull().failed(1, "`docker-credential-test` failed: it is locked");
    write("echo secret");
    pull().failed(1, "did not answer as a helper does");
    write("yes");
    pull().failed(1, "answered with more than 65536 bytes");
    write(r#"echo '{ "ServerURL": "x", "Username": "me", "Secret": "secret" }'"#);
    pull().ok();
    assert_eq!(fs::read_to_string(place.path().join("asked")).unwrap(), fake.authority);
}
