//! An app that shows the texts of `{{name}}.show`, and publishes in `{{name}}.shown` that it did.

use std::{
    env,
    error::Error,
    io::{self, Write},
};

use weir_peer::{Options, blocking::Peer};

fn main() -> Result<(), Box<dyn Error>> {
    let socket = env::var("WEIR_PEER_SOCKET").unwrap_or_else(|_| "/run/weir/peers.sock".to_owned());
    let peer = Peer::connect(socket, Options::new("app:{{name}}".parse()?))?;
    let mut texts = peer.subscribe("{{name}}.show")?;
    while let Some(event) = texts.next() {
        writeln!(io::stdout(), "{}", shown(&event.sender, &event.payload))?;
        peer.publish("{{name}}.shown", event.payload)?;
    }
    Err(format!("the session has ended: {}", peer.closed()).into())
}

/// A line for people.
fn shown(sender: &str, payload: &[u8]) -> String {
    format!("{sender} says {}", String::from_utf8_lossy(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_behind_its_sender() {
        assert_eq!(shown("main", b"hello"), "main says hello");
    }
}
