//! What Main does with the descriptions of its extensions: the control interface, the gateway, `validate`.

use std::fs;

use serde_json::{Value, json};

use super::support::{Running, with_own_component};

/// Storage, which checks its requests, and an app that may read a key and the queue's jobs, and no more.
const EXTENSIONS: &str = r#"
[main]
data-dir = "kept"

[store.storage]

[[extension]]
id = "storage"
path = "storage.wasm"
fulfills = ["local.storage@1"]
grants.stores = ["storage"]
validate = "requests"
"#;

fn storage(more: &str) -> Running {
    let dir = with_own_component(&format!("{EXTENSIONS}{more}"));
    fs::copy(test_guests::path("storage"), dir.path().join("storage.wasm")).unwrap();
    Running::start(dir)
}

fn get(main: &Running, route: &str) -> (String, Value) {
    let (head, body) = main.http(&format!("GET {route} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n"));
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(&body).unwrap())
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn the_control_interface_shows_the_contract_of_a_real_plugin_as_its_author_wrote_it() {
    let main = storage("");
    let (status, all) = get(&main, "/v1/contracts");
    assert_eq!(status, "HTTP/1.1 200 OK");
    // Main describes its own, where there are stores.
    let [contract, of_main] = all["contracts"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!((&of_main["contract"], &of_main["provider"]), (&json!("store@1"), &json!("main")));
    assert_eq!(
        (&contract["contract"], &contract["provider"]),
        (&json!("local.storage@1"), &json!("storage"))
    );
    let document = &contract["document"];
    let methods = ["get", "set", "delete", "list"].map(|name| format!("local.storage@1/{name}"));
    assert_eq!(names(&document["methods"]), methods);
    assert_eq!(document["methods"][0]["params"][0]["schema"], json!({ "type": "string" }));
    let one = json!({ "contracts": [contract] });
    assert_eq!(get(&main, "/v1/contracts/local.storage@1"), (status, one));

    let (status, refused) = get(&main, "/v1/contracts/puppet@1");
    let message = "nothing that runs describes `puppet@1`";
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert_eq!(refused, json!({ "error": { "code": "not-described", "message": message } }));
}

#[test]
fn a_call_is_checked_by_the_description_if_the_caller_asks_for_that() {
    let main = storage("");
    let call = |operation: &str, header: &str, body: &str| {
        let length = body.len();
        let head = format!("POST /v1/call/local.storage@1/{operation} HTTP/1.1\r\nHost: weir\r\n{header}");
        let request = format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        let (head, body) = main.http(&request);
        (head.lines().next().unwrap().to_owned(), serde_json::from_str::<Value>(&body).unwrap())
    };
    let strict = "Prefer: respond-async, Handling=Strict\r\n";
    let refused = |message: &str| {
        let error = json!({ "error": { "code": "misfit", "message": message } });
        ("HTTP/1.1 400 Bad Request".to_owned(), error)
    };
    let unknown = "the arguments do not fit: `$.kye` is unknown: did you mean `key`?";
    for _ in 0..2 {
        assert_eq!(call("get", strict, r#"{"kye":"volume"}"#), refused(unknown));
    }
    let none = "`local.storage@1` has no operation `gte`; it has `get`, `set`, `delete`, `list`";
    assert_eq!(call("gte", strict, "{}"), refused(none));
    assert_eq!(main.json(&["status", "--json", "storage"])["received"], 0);
    assert_eq!(call("get", strict, r#"{"key":"volume"}"#).1, json!({ "value": null }));
    // Without the header, the provider itself answers.
    assert_eq!(call("get", "", r#"{"kye":"volume"}"#).1["error"]["code"], "handler");
}

#[test]
fn a_request_that_does_not_fit_never_reaches_an_extension_that_has_its_requests_checked() {
    let main = storage("");
    let call = |arguments: &str| main.weir(&["call", "--raw", "local.storage@1", "get", arguments]);
    let refused = call(r#"{"kye":"volume"}"#);
    assert_eq!(refused.code, 7);
    assert_eq!(refused.stderr, "error: invalid-argument: `$.kye` is unknown: did you mean `key`?\n");
    assert_eq!(call(r#"{"key":"volume"}"#).good(), r#"{"value":null}"#);
    assert_eq!(main.json(&["status", "--json", "storage"])["refused"], 1);
    let status = main.weir(&["status", "storage"]).good();
    assert!(status.contains("\nrefused   1\n"), "{status}");

    // Once it is off, storage refuses such a request itself.
    let file = main.path().join("weir.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("validate = \"requests\"", "")).unwrap();
    let plan = main.weir(&["plan"]).good();
    assert!(plan.contains("validate"), "{plan}");
    main.weir(&["reload"]).good();
    let refused = call(r#"{"kye":"volume"}"#).stderr;
    assert!(refused.starts_with("error: invalid-argument: unknown field `kye`"), "{refused}");
    assert_eq!(main.json(&["status", "--json", "storage"])["refused"], Value::Null);
    let status = main.weir(&["status", "storage"]).good();
    assert!(!status.contains("refused"), "{status}");
}

#[cfg(feature = "gateway")]
#[test]
fn an_app_discovers_what_is_described_of_what_it_may_reach_and_nothing_else() {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
        path::Path,
    };

    use weir_host::config::TokenHash;

    let token = "weir_0123456789abcdef_reader";
    let main = storage(&format!(
        "[gateway]\nlisten = ['unix:gateway.sock']\n\
         alias = {{ 'storage.read' = 'local.storage@1/get' }}\n\
         [peer.'app:reader']\ntokens = ['{}']\nwants = ['local.storage@1/get', 'local.storage@1/list']\n",
        TokenHash::of(token)
    ));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#;
    let request = format!(
        "POST /v1/peers/app:reader/rpc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let socket: &Path = &main.path().join("gateway.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let document = serde_json::from_str::<Value>(body).unwrap()["result"].take();

    let method = |name: &str| {
        let methods = document["methods"].as_array().unwrap();
        methods.iter().find(|method| method["name"] == name).cloned().unwrap_or_default()
    };
    let read = method("local.storage@1/get");
    assert_eq!(names(&read["params"]), ["key"]);
    assert_eq!(read["errors"][0]["message"], "invalid-argument");
    let mut alias = method("storage.read");
    alias["name"] = read["name"].clone();
    assert_eq!(alias, read);
    assert_eq!(method("local.storage@1/set"), Value::Null);
    assert_eq!(method("events.subscribe")["params"], json!([]));
    let types: Vec<&String> = document["components"]["schemas"].as_object().unwrap().keys().collect();
    assert_eq!(types, ["Found", "Keys"]);
}
