//! Programs outside Main, with tokens of the command, under its eyes.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
};

use bytes::BytesMut;
use serde_json::Value;
use weir_peer::{
    ConnectError, Ended, Error, Options,
    blocking::{Peer, Subscription},
    frame::{FromPeer, Hello},
};

use super::support::{Done, Killed, Running, assert_golden, configured, done, until, weir};

/// Main with a peer socket, and these tables.
pub(super) fn with_socket(tables: &str) -> String {
    format!("peer-socket = \"peers.sock\"\n{tables}")
}

/// Main reads this file with its next reload.
fn rewrite(main: &Running, text: &str) {
    fs::copy(configured(text).path().join("weir.toml"), main.path().join("weir.toml")).unwrap();
}

/// Has Main read a file in which only the player's table has changed.
fn reload(main: &Running, text: &str) {
    rewrite(main, text);
    let reloaded = main.weir(&["reload"]);
    assert_eq!((reloaded.code, reloaded.stdout.as_str()), (0, "`peer.\"app:player\"` was changed\n"));
}

pub(super) fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

pub(super) fn connect(main: &Running, name: &str, token: Option<&str>) -> Result<Peer, ConnectError> {
    let options = Options::new(name.parse().unwrap());
    let options = token.into_iter().fold(options, Options::token);
    Peer::connect(main.path().join("peers.sock"), options)
}

fn assert_denied(connected: Result<Peer, ConnectError>) {
    match connected {
        Err(ConnectError::Refused { code, .. }) => assert_eq!(code, "denied"),
        other => panic!("{other:?}"),
    }
}

fn assert_closed(peer: &Peer, expected: &str) {
    match peer.closed() {
        Ended::Closed { code, .. } => assert_eq!(code, expected),
        other => panic!("{other}"),
    }
}

fn status_of(main: &Running, name: &str) -> Value {
    let all = main.json(&["peers", "--json"]);
    all["peers"].as_array().unwrap().iter().find(|peer| peer["name"] == name).unwrap().clone()
}

/// A token, and its lines of the explanation for the file.
fn token(dir: &Path, name: &str) -> (String, String) {
    let Done { code, stdout, stderr } =
        done(weir(dir).args(["peers", "token", name, "--config", "weir.toml"]));
    assert_eq!(code, 0, "{stderr}");
    let (_, line) = stderr.split_once("tokens = ").unwrap();
    let (line, _) = line.split_once("]\n").unwrap();
    (stdout.trim_end().to_owned(), format!("tokens = {line}]\n"))
}

#[test]
fn sessions_and_names_without_one_are_listed_with_denied_attempts() {
    let (own, other) = (own_uid(), own_uid() + 1);
    let mut main = Running::with(&with_socket(&format!(
        "[peer.\"app:player\"]\nuid = {own}\n[peer.\"app:screen\"]\nuid = {other}\n"
    )));
    assert_denied(connect(&main, "app:screen", None));
    let line = main.until("wrong proofs");
    let expected = format!("wrong proofs of a name peer=\"app:screen\" proof=\"uid {own}\" denied=1");
    assert!(line.contains(&expected), "{line}");
    assert_denied(connect(&main, "app:scren", None));
    let line = main.until("no peer has");
    assert!(line.contains("no peer has the name of a program name=\"app:scren\" denied=1"), "{line}");
    let rows = main.weir(&["peers"]).good();
    let expected = "\
NAME        SESSION        AGE  PROOF  IN FLIGHT  WAITING  SENT  RECEIVED  LOST  LATE  SERVES
app:player  not connected  -    -      -          -        -     -         -     -     -
app:screen  not connected  -    -      -          -        -     -         -     -     -

1 attempt to connect as `app:screen` with a wrong proof

`peer-socket` refused so far: 2 proof
";
    assert_eq!(rows, expected);

    let player = connect(&main, "app:player", None).unwrap();
    let rows = main.weir(&["peers"]).good();
    let row: Vec<_> = rows.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        (&row[..2], &row[4..]),
        (&["app:player", "1"][..], &["uid", "0", "0", "/", "0", "B", "0", "0", "0", "0", "-"][..])
    );
    let status = status_of(&main, "app:player");
    assert_eq!((&status["sessions"][0]["id"], &status["sessions"][0]["proof"]), (&1.into(), &"uid".into()));

    let rows = main.weir(&["ps"]).good();
    let (_, peers) = rows.split_once("\n\n").unwrap();
    let expected = "\
PEER        STATE          SESSIONS  SENT  RECEIVED  LOST
app:player  connected      1         0     0         0
app:screen  not connected  0         0     0         0
";
    assert_eq!(peers, expected);
    let all = main.json(&["ps", "--json"]);
    assert_eq!((&all["extensions"], &all["peers"][0]), (&Value::Array(Vec::new()), &status));
    player.leave();
    until("the session is gone", || {
        status_of(&main, "app:player")["sessions"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn an_operator_ends_a_session_and_the_log_has_their_name() {
    let mut main = Running::with(&with_socket(&format!("[peer.\"app:player\"]\nuid = {}\n", own_uid())));
    let player = connect(&main, "app:player", None).unwrap();
    let session = player.session().to_string();
    let said = main.weir(&["peers", "end", &session]).good();
    assert_eq!(said, format!("session {session} of `app:player` was ended\n"));
    assert_closed(&player, "ended");
    let line = main.until("end of the session");
    assert!(
        line.contains(&format!(
            "end of the session {session} of `app:player`: done by=\"uid {}, pid ",
            own_uid()
        )),
        "{line}"
    );

    let again = main.weir(&["peers", "end", &session]);
    let expected =
        format!("error: no session of a peer has the number `{session}`; `weir peers` lists the sessions\n");
    assert_eq!((again.code, again.stderr), (4, expected));
    let player = connect(&main, "app:player", None).unwrap();
    let ended = main.json(&["peers", "end", "--json", &player.session().to_string()]);
    assert_eq!(ended, serde_json::json!({ "id": player.session(), "name": "app:player" }));
    assert_closed(&player, "ended");
}

#[test]
fn a_token_is_made_exchanged_and_taken_back_by_reloads() {
    let table = |tokens: &str| with_socket(&format!("[peer.\"app:player\"]\n{tokens}"));
    let dir = configured(&table(""));
    let (first, line) = token(dir.path(), "app:player");
    assert!(first.starts_with("weir_") && first.len() == 69, "{first}");
    let main = Running::start(dir);
    assert_denied(connect(&main, "app:player", Some(&first)));
    reload(&main, &table(&line));
    let old = connect(&main, "app:player", Some(&first)).unwrap();
    let mut wrong = first.clone();
    let last = if wrong.pop() == Some('0') { '1' } else { '0' };
    wrong.push(last);
    for wrong in [wrong.as_str(), &first[..68], "weir_", &format!("{first} ")] {
        assert_denied(connect(&main, "app:player", Some(wrong)));
    }
    assert_eq!(status_of(&main, "app:player")["sessions"][0]["proof"], "token");

    // Exchange it.
    let (second, both) = token(main.path(), "app:player");
    assert_eq!(both.matches("sha256:").count(), 2, "{both}");
    rewrite(&main, &table(&both));
    assert_eq!(main.weir(&["plan"]).good(), "`peer.\"app:player\"` would be changed\n  tokens: 1 added\n");
    assert_eq!(main.weir(&["reload"]).code, 0);
    let new = connect(&main, "app:player", Some(&second)).unwrap();
    drop(connect(&main, "app:player", Some(&first)).unwrap());
    assert_eq!((old.ended(), new.ended()), (None, None));

    // A third token leaves out the first.
    let (third, newest) = token(main.path(), "app:player");
    reload(&main, &table(&newest));
    assert_closed(&old, "revoked");
    assert_denied(connect(&main, "app:player", Some(&first)));
    let newer = connect(&main, "app:player", Some(&third)).unwrap();
    assert_eq!(new.ended(), None);
    reload(&main, &table(""));
    assert_closed(&new, "revoked");
    assert_closed(&newer, "revoked");
    assert_eq!(status_of(&main, "app:player")["denied"], 6);

    rewrite(&main, &with_socket(""));
    let planned = main.weir(&["plan"]).good();
    assert!(
        planned.starts_with("`peer.\"app:player\"` would be removed\n  - limits.in-flight = "),
        "{planned}"
    );
    assert_eq!(main.weir(&["reload"]).code, 0);
    assert_denied(connect(&main, "app:player", Some(&third)));
    let expected = "no peers are configured\n\n`peer-socket` refused so far: 7 proof\n";
    assert_eq!(main.weir(&["peers"]).good(), expected);
}

#[test]
fn what_to_do_with_a_token_is_said_beside_it() {
    let hash = |digit: &str| format!("\"sha256:{}\"", digit.repeat(64));
    let (one, two) = (hash("1"), hash("2"));
    let dir = configured(&with_socket(&format!(
        "[peer.\"app:new\"]\n[peer.\"app:one\"]\ntokens = [{one}]\n[peer.\"app:two\"]\ntokens = [{}, {two}]\n",
        hash("3")
    )));
    let mut text = String::new();
    for args in [
        &["app:new"][..],
        &["app:new", "--config", "weir.toml"],
        &["app:one", "--config", "weir.toml"],
        &["app:two", "--config", "weir.toml"],
        &["app:stranger", "--config", "weir.toml"],
        &["app:one", "--config", "weir.toml", "--json"],
        &["app:stranger", "--config", "weir.toml", "--json"],
    ] {
        let before = fs::read(dir.path().join("weir.toml")).unwrap();
        let made = done(weir(dir.path()).args(["peers", "token"]).args(args));
        assert_eq!(fs::read(dir.path().join("weir.toml")).unwrap(), before);
        assert_eq!(made.code, 0);
        let json: Option<Value> = serde_json::from_str(&made.stdout).ok();
        let token = json.as_ref().map_or(made.stdout.trim_end(), |json| json["token"].as_str().unwrap());
        let hash = weir_host::config::TokenHash::of(token).to_string();
        assert!(format!("{}{}", made.stdout, made.stderr).contains(&hash));
        let shown = |text: &str| text.replace(token, "TOKEN").replace(&hash, "sha256:HASH");
        let (stdout, stderr) = (shown(&made.stdout), shown(&made.stderr));
        text.push_str(&format!("$ weir peers token {}\n{stdout}{stderr}\n", args.join(" ")));
    }
    assert_golden("peers-token", &text);
}

/// The puppet for peers to call, and a player with these grants.
fn player(grants: &str) -> String {
    with_socket(&format!(
        "[[extension]]\nid = \"puppet\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\npublishes = [\"told.>\"]\n\
         [peer.\"app:player\"]\nuid = {}\n{grants}",
        own_uid()
    ))
}

#[test]
fn changed_grants_hold_at_once_for_an_open_session() {
    let granted = "wants = [\"puppet@1/run\"]\nsubscribes = [\"told.>\"]\n";
    let main = Running::with(&player(granted));
    let peer = connect(&main, "app:player", None).unwrap();
    let call = || peer.call("puppet@1", "run", "echo hello");
    let mut told: Subscription = peer.subscribe("told.>").unwrap();
    assert_eq!(call().unwrap(), "hello");
    main.weir(&["publish", "told.first", "1"]).good();
    assert_eq!(told.next().unwrap().payload, "1");

    reload(&main, &player(""));
    assert!(matches!(call(), Err(Error::PermissionDenied(_))));
    assert!(told.next().is_none(), "a subscription without its grant has ended");
    assert!(matches!(peer.subscribe("told.>"), Err(Error::PermissionDenied(_))));

    reload(&main, &player(granted));
    assert_eq!(call().unwrap(), "hello");
    let mut told = peer.subscribe("told.>").unwrap();
    main.weir(&["publish", "told.second", "2"]).good();
    assert_eq!(told.next().unwrap().payload, "2");
    assert_eq!((peer.ended(), peer.session()), (None, 1));
}

#[test]
fn ps_says_which_peer_an_extension_waits_for() {
    let main = Running::with(&with_socket(&format!(
        "[peer.\"sidecar:thermal\"]\nuid = {}\nfulfills = [\"thermal@1\"]\n\
         [[extension]]\nid = \"needy\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\nrequires = [\"thermal@1\"]\n",
        own_uid()
    )));
    let reason = "it requires `thermal@1`, and `sidecar:thermal` is not connected";
    let rows = main.weir(&["ps"]).good();
    assert!(
        rows.contains("\nneedy  extension  failed  ") && rows.contains(&format!("\n`needy`: {reason}\n")),
        "{rows}"
    );
    assert_eq!(main.json(&["status", "--json", "needy"])["reason"], reason);

    let thermal = connect(&main, "sidecar:thermal", None).unwrap();
    let mut requests = thermal.serve("thermal@1", &["read"]).unwrap();
    until("it starts by itself", || {
        (main.json(&["status", "--json", "needy"])["state"] == "ready").then_some(())
    });
    let served = std::thread::spawn(move || {
        let request = requests.next().unwrap();
        assert_eq!((request.sender(), request.operation()), ("needy", "read"));
        request.answer(Ok("warm"));
    });
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "call thermal@1 read x"]).good(), "warm");
    served.join().unwrap();
}

/// What another process does in the test below. Alone it does nothing.
#[test]
fn floods_a_socket_if_it_is_told_which() {
    let Some(socket) = env::var_os(FLOODED) else { return };
    let all: Vec<_> = (0..400).map(|_| UnixStream::connect(&socket)).collect();
    writeln!(io::stdout(), "\n{FLOODED}").unwrap();
    // Until the test has ended.
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(all);
}

/// A variable, and what is said once it is so.
const FLOODED: &str = "FLOODED_BY_A_TEST";

#[test]
fn a_process_that_floods_the_peer_socket_keeps_no_other_out() {
    let main = Running::with(&with_socket(&format!("[peer.\"app:player\"]\nuid = {}\n", own_uid())));
    let socket = main.path().join("peers.sock");
    let mut honest = UnixStream::connect(&socket).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--nocapture", "floods_a_socket_if_it_is_told_which"]).env(FLOODED, &socket);
    let mut flood = Killed(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let said = BufReader::new(flood.0.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap() == FLOODED));
    // Main has heard of all of them, and of this newcomer. The older one says hello only now.
    drop(connect(&main, "app:player", None).unwrap());
    let (name, token) = ("app:player", None);
    let mut hello = BytesMut::new();
    FromPeer::Hello(Hello { oldest: 1, newest: 1, requests: 0, events: 0, name, token }).encode(&mut hello);
    honest.write_all(&hello).unwrap();
    let mut welcome = [0; 5];
    honest.read_exact(&mut welcome).unwrap();
    assert_eq!(welcome[4], 0x81, "{welcome:?} is no WELCOME");
}
