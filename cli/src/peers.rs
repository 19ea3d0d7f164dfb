//! `weir peers`: sessions of programs outside Main, their end, and tokens for them.

use std::path::Path;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use weir_host::{
    config::{PeerConfig, TokenHash},
    names::PeerName,
};

use crate::{
    args::{Asked, EndArgs, PeersArgs, PeersCommand, TokenArgs},
    chance::random,
    client::{self, Client, Patience, Route},
    configuration,
    control::read,
    model,
    output::{self, printable},
    tables,
};

/// Marks a token, also for programs that search files for secrets.
const PREFIX: &str = "weir_";

/// Too many to guess.
const RANDOM_BYTES: usize = 32;

pub(crate) fn peers(PeersArgs { command, asked }: PeersArgs) -> anyhow::Result<()> {
    match command {
        None => client::block_on(list(asked)),
        Some(PeersCommand::End(args)) => client::block_on(end(args)),
        Some(PeersCommand::Token(args)) => token(&args),
    }
}

async fn list(Asked { json, target }: Asked) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let route = Route::new(&["peers"]);
    if json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let model::Peers { peers, parts } = client.get(&route).await?;
    let text = tables::peers(&peers, std::time::SystemTime::now()) + &tables::refusals(&parts);
    output::write(text.as_bytes())
}

async fn end(EndArgs { session, asked: Asked { json, target } }: EndArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let route = Route::new(&["peers", "sessions", &session.to_string(), "end"]);
    let answer = client.ask(Method::POST, &route, Bytes::new(), Patience::Query).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&answer)?);
    }
    let model::EndedSession { id, name } = read(&answer)?;
    output::line(&format!("session {id} of `{}` was ended", printable(&name)))
}

fn token(TokenArgs { name, config, json }: &TokenArgs) -> anyhow::Result<()> {
    let file = config.as_deref();
    let config = file.map(configuration::load).transpose()?;
    let peer = config.as_ref().map(|config| config.peers.iter().find(|peer| peer.name == *name));
    let token = generate()?;
    let plan = Plan { name, file, peer, hash: TokenHash::of(&token) };
    let warning = plan.warning();
    if !warning.is_empty() {
        output::complain(&warning);
    }
    if *json {
        let hashes: Vec<_> = plan.hashes().iter().map(ToString::to_string).collect();
        let hash = plan.hash.to_string();
        return output::json(
            &json!({ "name": name.as_str(), "token": token, "hash": hash, "tokens": hashes }),
        );
    }
    output::line(&token)?;
    let gap = if output::is_terminal() { "\n" } else { "" };
    output::complain(&format!("{gap}{}", plan.explanation()));
    Ok(())
}

/// A token that nobody has yet.
pub(crate) fn generate() -> anyhow::Result<String> {
    Ok(PREFIX.to_owned() + &hex::encode(random::<RANDOM_BYTES>()?))
}

/// How an exchange ends.
const REPLACE: &str = "When the program has connected with the new token,\ntake the second hash out \
                       and reload: sessions that still use the token before end.";

/// What becomes of the peer's table.
struct Plan<'a> {
    name: &'a PeerName,
    file: Option<&'a Path>,
    /// The peer in the file, if the command was given one.
    peer: Option<Option<&'a PeerConfig>>,
    hash: TokenHash,
}

impl Plan<'_> {
    /// The hashes of the table: the new one, and the newest before it.
    fn hashes(&self) -> Vec<TokenHash> {
        [self.hash].into_iter().chain(self.present().first().copied()).collect()
    }

    /// The hashes that the file has, newest first.
    fn present(&self) -> &[TokenHash] {
        self.peer.flatten().map_or(&[], |peer| &peer.tokens)
    }

    /// Where the table is, for people.
    fn place(&self) -> String {
        self.file.map_or("the configuration".to_owned(), |file| {
            format!("`{}`", printable(&file.display().to_string()))
        })
    }

    /// Empty if there is nothing to warn of.
    fn warning(&self) -> String {
        match self.peer {
            Some(None) => {
                format!("warning: {} has no peer `{}`: is the name right?", self.place(), self.name)
            }
            _ => String::new(),
        }
    }

    fn explanation(&self) -> String {
        let Self { name, peer, .. } = self;
        let hashes: Vec<_> = self.hashes().iter().map(|hash| format!("\"{hash}\"")).collect();
        let line = match &hashes[..] {
            [only] => format!("tokens = [{only}]"),
            several => format!("tokens = [\n    {},\n]", several.join(",\n    ")),
        };
        let (file, table) = (self.place(), format!("[peer.\"{name}\"]"));
        let (place, line) = match peer {
            Some(None) => (file, format!("{table}\n{line}")),
            _ => (format!("`{table}` of {file}"), line),
        };
        let next = match self.present() {
            [] => "To take the token back, take its hash out and reload.".to_owned(),
            [_] => format!("Both tokens work then. {REPLACE}"),
            [_, oldest, ..] => format!(
                "This leaves out `{oldest}`, since a peer has\nat most two: sessions that use its token end. {REPLACE}"
            ),
        };
        format!(
            "This is a token for `{name}`, shown only this once: give it to the program.\n\
             Put its hash into {place}, and run `weir reload`:\n\n{line}\n\n{next}"
        )
    }
}
