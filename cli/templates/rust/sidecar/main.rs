//! A sidecar that serves `{{name}}@1`: the load of this machine. `contracts.json` describes it.

use std::{env, error::Error, fs};

use serde::Serialize;
use weir_peer::{HandlerError, Options, blocking::Peer};

/// Average number of tasks that ran or wanted to run.
#[derive(Debug, PartialEq, Serialize)]
struct Load {
    /// Over the last minute.
    one: f64,
    /// Over the last five minutes.
    five: f64,
    /// Over the last fifteen minutes.
    fifteen: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let socket = env::var("WEIR_PEER_SOCKET").unwrap_or_else(|_| "/run/weir/peers.sock".to_owned());
    let peer = Peer::connect(socket, Options::new("sidecar:{{name}}".parse()?))?;
    let mut requests = peer.serve("{{name}}@1", &["load"])?;
    peer.describe(include_str!("../contracts.json"))?;
    while let Some(request) = requests.next() {
        let answer = match request.operation() {
            "load" => load(),
            other => Err(HandlerError::new("unknown", other)),
        };
        request.answer(answer);
    }
    // The service manager starts the sidecar again.
    Err(format!("the session has ended: {}", peer.closed()).into())
}

fn load() -> Result<Vec<u8>, HandlerError> {
    let text = fs::read_to_string("/proc/loadavg").map_err(|error| unreadable(&error))?;
    let load = parsed(&text).ok_or_else(|| unreadable(&"it has another form"))?;
    serde_json::to_vec(&load).map_err(|error| unreadable(&error))
}

fn unreadable(why: &dyn ToString) -> HandlerError {
    HandlerError::new("unreadable", why.to_string())
}

/// The load in a text as that of `/proc/loadavg`.
fn parsed(text: &str) -> Option<Load> {
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
    Some(Load { one: numbers.next()?, five: numbers.next()?, fifteen: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_the_first_three_numbers() {
        assert_eq!(parsed("0.25 1.5 2 1/99 7\n"), Some(Load { one: 0.25, five: 1.5, fifteen: 2.0 }));
        assert_eq!(parsed("none"), None);
    }
}
