//! WebSockets that wait.

use anyhow::{Result, ensure};

use crate::{Answering, websocket};

/// Nothing has this method, and only the server can say so.
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"nothing@1/ask"}"#;

pub(crate) fn start(address: &str, count: u32) -> Result<Answering> {
    let mut streams = (0..count).map(|_| websocket::open(address)).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(move |_| {
        for stream in &mut streams {
            let answer = websocket::ask(stream, ASK)?;
            ensure!(answer.contains("nothing@1/ask"), "a WebSocket answers {answer}");
        }
        Ok("well".to_owned())
    }))
}
