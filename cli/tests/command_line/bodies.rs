//! Payloads that stall on their way to Main, and answers without a reader.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use super::support::{PUPPET, Running, until};

const LARGE: &str = r#"
[[extension]]
id = "large"
path = "puppet.wasm"
class = "max"
fulfills = ["large@1"]
config.contract = "large@1"
limits.message-size = "64 MiB"
limits.inbox.bytes = "128 MiB"
limits.memory = "256 MiB"
"#;

const MIB: usize = 1024 * 1024;

fn resident(main: &Running) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", main.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// Sends a request without its last byte, as far as Main takes it.
fn stall(main: &Running, contract: &str) -> UnixStream {
    let mut stream = UnixStream::connect(main.socket()).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let size = 64 * MIB;
    let head = format!(
        "POST /v1/call/{contract}/run HTTP/1.1\r\nhost: weir\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _refused = stream.write_all(&vec![b'x'; size - 1]);
    stream
}

#[test]
fn bodies_that_stall_take_no_more_than_the_largest_and_all_is_given_back() {
    let main = Running::with(&format!("{PUPPET}{LARGE}"));
    let before = resident(&main);
    let stalled: Vec<_> = (0..12).map(|_| stall(&main, "large@1")).collect();
    let taken = resident(&main).saturating_sub(before);
    assert!(taken < 80 * MIB, "{taken} bytes");
    // Small requests still find room. A large one is refused.
    assert_eq!(main.weir(&["call", "large@1", "run", "--raw", "own-name"]).good(), "large");
    let busy = main.weir_with_stdin(&["call", "large@1", "run", "--raw", "-"], &vec![b' '; MIB]);
    assert_eq!(busy.code, 8, "{}", busy.stderr);
    let expected = "error: Main is busy: other payloads take all of the 67108864 bytes for them\n";
    assert_eq!(busy.stderr, expected);

    drop(stalled);
    until("the memory is given back", || (resident(&main).saturating_sub(before) < 8 * MIB).then_some(()));
    let echoed = main.weir_with_stdin(&["call", "large@1", "run", "--raw", "-"], b"own-name");
    assert_eq!(echoed.good(), "large");
}

#[test]
fn what_its_provider_would_not_take_is_refused_and_never_kept() {
    let main = Running::with(PUPPET);
    let before = resident(&main);
    let stalled: Vec<_> = (0..12).map(|_| stall(&main, "puppet@1")).collect();
    let taken = resident(&main).saturating_sub(before);
    assert!(taken < 8 * MIB, "{taken} bytes");
    for mut stream in stalled {
        stream.write_all(b"x").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains(r#""code":"too-large""#), "{answer}");
    }
}

#[test]
fn answers_that_nobody_reads_take_no_more_than_the_largest() {
    let main = Running::with(LARGE);
    let command = format!("large {}", 30 * MIB);
    let ask = || {
        let mut stream = UnixStream::connect(main.socket()).unwrap();
        let head = "POST /v1/call/large@1/run HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{command}", command.len()).unwrap();
        stream
    };
    ask().read_to_end(&mut Vec::new()).unwrap();
    let before = resident(&main);
    let unread: Vec<_> = (0..12).map(|_| ask()).collect();
    let answered = || main.json(&["status", "--json", "large"])["received"].as_u64() == Some(13);
    until("all are answered", || answered().then_some(()));
    assert_eq!(main.weir(&["call", "large@1", "run", "--raw", "own-name"]).good(), "large");
    let taken = resident(&main).saturating_sub(before);
    assert!(taken < 80 * MIB, "{taken} bytes");

    drop(unread);
    until("the memory is given back", || (resident(&main).saturating_sub(before) < 8 * MIB).then_some(()));
}

#[cfg(feature = "gateway")]
#[test]
fn a_post_in_chunks_of_a_byte_takes_its_bytes_and_not_many_times_as_much() {
    use weir_host::config::TokenHash;

    let token = "weir_0123456789abcdef_chunks";
    let main = Running::with(&format!(
        "{PUPPET}[gateway]\nlisten = ['unix:gateway.sock']\n\
         [peer.'app:chunks']\ntokens = ['{}']\nwants = ['puppet@1']\n",
        TokenHash::of(token)
    ));
    let mut stream = UnixStream::connect(main.path().join("gateway.sock")).unwrap();
    let head = "POST /v1/peers/app:chunks/rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n";
    write!(stream, "{head}Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\r\n").unwrap();
    let before = resident(&main);
    let size = MIB / 4;
    stream.write_all(&b"1\r\n \r\n".repeat(size)).unwrap();
    // All but what is in the socket is read.
    let taken = resident(&main).saturating_sub(before);
    assert!(taken < 8 * MIB, "{taken} bytes for a body of {size}");
    // The puppet takes its command as text, which `params` cannot be: it comes as its bytes.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"puppet@1/run","params":{"$base64":"b3duLW5hbWU="}}"#;
    write!(stream, "{:x}\r\n{call}\r\n0\r\n\r\n", call.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""id":1"#), "{answer}");
    assert!(!answer.contains("error"), "{answer}");
}
