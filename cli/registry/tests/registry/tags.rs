use serde_json::json;

use crate::{
    fake::{Fake, Held, answer},
    run::Place,
};

/// Answers with these tags, and a link if there is one.
fn listing(tags: serde_json::Value, link: &'static str) -> Fake {
    Fake::with(Held::default(), move |_, stream| {
        let link = if link.is_empty() { String::new() } else { format!("Link: {link}\r\n") };
        Some(answer(stream, 200, &link, json!({ "name": "a/b", "tags": tags }).to_string().as_bytes()))
    })
}

fn tags(fake: &Fake) -> crate::run::Ended {
    Place::new().run(&["tags", &format!("{}/a/b", fake.authority)])
}

#[test]
fn all_pages_are_listed() {
    let fake = Fake::with(Held::default(), |request, stream| {
        let next = "Link: </v2/a/b/tags/list?n=1000&last=2>; rel=\"next\"\r\n";
        Some(match &*request.target {
            "/v2/a/b/tags/list?n=1000" => answer(stream, 200, next, br#"{ "tags": ["1", "2"] }"#),
            "/v2/a/b/tags/list?n=1000&last=2" => answer(stream, 200, "", br#"{ "tags": ["3"] }"#),
            other => panic!("{other}"),
        })
    });
    assert_eq!(tags(&fake).ok(), "1\n2\n3\n");
    assert_eq!(tags(&listing(json!(null), "")).ok(), "");
}

#[test]
fn a_list_that_is_none_or_never_ends_is_refused() {
    let again = "</v2/a/b/tags/list>; rel=\"next\"";
    tags(&listing(json!(["a\nb"]), "")).failed(1, "names the tag `a\\nb`, which is none");
    tags(&listing(json!([1]), "")).failed(1, "sent no list of tags");
    tags(&listing(json!([]), again)).failed(1, "ever more pages");
    tags(&listing(json!(vec!["a"; 5000]), again)).failed(1, "has more than 10000 tags");
    tags(&listing(json!(vec!["a"; 300_000]), "")).failed(1, "sent a list of tags of more than 1048576 bytes");
    tags(&listing(json!(["a"]), "<ftp://a>; rel=\"next\"")).failed(1, "neither `https` nor `http`");
    let fake = Fake::with(Held::default(), |_, stream| Some(answer(stream, 404, "", b"")));
    tags(&fake).failed(4, "has no repository");
}
