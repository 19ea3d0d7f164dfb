//! The server in a real Main. `weir test` starts it, and says where the gateway is.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
};

fn get(path: &str) -> Option<String> {
    // Under plain `cargo test` there is no Main.
    let gateway = env::var("WEIR_HTTP_ADDRESS").ok()?;
    let mut stream = TcpStream::connect(gateway).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Some(answer)
}

#[test]
fn the_running_server_greets() {
    let Some(answer) = get("/Grace") else { return };
    assert!(answer.contains(" 200 OK\r\n") && answer.ends_with("hello, Grace\n"), "{answer}");
}

#[test]
fn a_greeting_needs_a_name() {
    let Some(answer) = get("/") else { return };
    assert!(answer.contains(" 404 Not Found\r\n"), "{answer}");
}
