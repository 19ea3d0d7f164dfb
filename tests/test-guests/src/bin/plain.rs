//! A program that knows nothing of Weir. The variable `DO` says what it does: a word, and an address or a number.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "it knows neither the log nor the timers of an SDK, and what it reads fits"
)]

use std::{
    env,
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    thread::sleep,
    time::Duration,
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result {
    let asked = env::var("DO")?;
    let (what, argument) = asked.split_once(' ').unwrap_or((&asked, ""));
    match what {
        "tick" => loop {
            println!("tick");
            work(argument.parse()?);
            sleep(Duration::from_millis(5));
        },
        "burn" => loop {
            std::hint::black_box(());
        },
        "end" => println!("done"),
        "tcp" => serve(&TcpListener::bind(argument)?),
        "tcp-hoard" => hoard(&TcpListener::bind(argument)?),
        "tcp-bind" => bound(argument, TcpListener::bind),
        "udp-bind" => bound(argument, UdpSocket::bind),
        "udp" => {
            let (socket, mut bytes) = (UdpSocket::bind(argument)?, [0; 1500]);
            loop {
                let (length, from) = socket.recv_from(&mut bytes)?;
                socket.send_to(&bytes[..length], from)?;
            }
        }
        "udp-ask" => println!("{:?}", ask(argument).map_err(|error| error.to_string())),
        "files" => {
            let opened: Vec<_> = (0..2000).map_while(|_| File::open("/data/file").ok()).collect();
            let error = File::open("/data/file").err().map(|error| error.to_string());
            println!("{} opened, then {error:?}", opened.len());
            drop(opened);
            println!("{:?}", File::open("/data/file").map(|_| "again").map_err(|error| error.to_string()));
        }
        other => println!("it knows no `{other}`"),
    }
    Ok(())
}

fn work(rounds: u64) {
    for number in 0..rounds {
        std::hint::black_box(number);
    }
}

/// Sends back what each client sends, one client after the other.
fn serve(listener: &TcpListener) {
    println!("listening");
    for mut client in listener.incoming().flatten() {
        // One that leaves is no reason to end.
        let _left = echo(&mut client);
    }
}

fn echo(client: &mut TcpStream) -> Result {
    let mut bytes = [0; 4096];
    loop {
        let length = client.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        client.write_all(&bytes[..length])?;
    }
}

/// Takes all clients, and never reads.
fn hoard(listener: &TcpListener) {
    println!("listening");
    let mut clients = Vec::new();
    for client in listener.incoming() {
        match client {
            Ok(client) => clients.push(client),
            Err(error) => {
                println!("{} accepted, then {:?}", clients.len(), error.to_string());
                clients.clear();
            }
        }
    }
}

/// Tries these addresses, of which it may have some.
fn bound<S>(addresses: &str, bind: impl Fn(String) -> std::io::Result<S>) {
    for address in addresses.split(' ') {
        let bound = bind(address.to_owned()).map(|_| "bound").map_err(|error| error.kind());
        println!("{bound:?}");
    }
}

fn ask(address: &str) -> Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.send_to(b"hello", address)?;
    let mut bytes = [0; 1500];
    let (length, _) = socket.recv_from(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}
