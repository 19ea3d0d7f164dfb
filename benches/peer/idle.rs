//! Sessions that wait.

use anyhow::{Result, ensure};
use weir_peer::Error;

use crate::{Answering, connect, runtime};

pub(crate) fn start(socket: &str, name: &str, count: u32) -> Result<Answering> {
    let runtime = runtime()?;
    let peers = runtime.block_on(async {
        let mut peers = Vec::new();
        for _ in 0..count {
            peers.push(connect(socket, name).await?);
        }
        anyhow::Ok(peers)
    })?;
    Ok(Box::new(move |_| {
        runtime.block_on(async {
            for peer in &peers {
                // Nothing fulfils it, and only Main can say so.
                let answer = peer.call("nothing@1", "ask", "").await;
                let is_from_main =
                    matches!(answer, Err(Error::UnknownContract(_) | Error::PermissionDenied(_)));
                ensure!(is_from_main, "a session answers {answer:?}");
            }
            Ok("well".to_owned())
        })
    }))
}
