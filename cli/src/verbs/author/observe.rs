//! Shows what passes through a Main: events, and how many messages each extension received.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    client::{Client, Route},
    output::{self, printable},
    verbs::{ps::Extensions, tail::Event},
};

/// Between two looks at the counts of messages.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Prints to stderr until Main ends.
pub(super) async fn observe(socket: PathBuf) {
    let ended: anyhow::Result<()> = tokio::select! {
        ended = events(&socket) => ended,
        ended = messages(&socket) => ended,
    };
    // The log says why Main ended.
    drop(ended);
}

async fn events(socket: &Path) -> anyhow::Result<()> {
    let route = Route::new(&["events"]).with("pattern", Some(">"));
    let mut lines = Client::connect_to(socket).await?.stream(&route).await?;
    while let Some(line) = lines.next().await? {
        let event: Event<'_> = serde_json::from_slice(&line)?;
        let (topic, sender) = (printable(&event.topic), printable(&event.sender));
        output::complain(&format!("event `{topic}` from `{sender}`: {}", event.shown_payload()));
    }
    Ok(())
}

async fn messages(socket: &Path) -> anyhow::Result<()> {
    let mut client = Client::connect_to(socket).await?;
    let mut seen = BTreeMap::new();
    loop {
        let Extensions { extensions } = client.get(&Route::new(&["extensions"])).await?;
        for extension in extensions {
            let received = extension.received;
            let before = seen.insert(extension.id.clone(), received).unwrap_or_default();
            if let Some(new @ 1..) = received.checked_sub(before) {
                let id = &extension.id;
                let new = output::counted(new, "message");
                output::complain(&format!("`{id}` received {new}, {received} so far"));
            }
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
