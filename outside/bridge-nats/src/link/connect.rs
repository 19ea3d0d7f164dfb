//! Connects to NATS, again and again.
//!
//! Of two bridges with one name the second one is refused. A bridge asks for its own name, and answers when asked for it. The
//! newcomer hears the one that is there, and stays out. If both are new, the one with the larger number stays out. The subject
//! has the node's name, so that a server with permissions lets nobody else answer.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use async_nats::{
    Auth, AuthError, Client, ConnectOptions, Event, HeaderMap, Message, ServerAddr, Subscriber,
};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};

use super::{Link, NoAnswer};
use crate::{
    config::{Config, NatsSection},
    secrets,
    shared::{Pause, Shared, tell},
};

/// Time for one server to take the connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Events of the client that may wait. The client tells of few.
const EVENTS: usize = 16;

/// Time for another bridge to answer. One that has died leaves a subscription without an answer for a while.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// Connects again and again, and tells the tasks of the bridge when there is a link. Never returns.
pub(crate) async fn keep(shared: Arc<Shared>, links: watch::Sender<Option<Link>>) -> Infallible {
    warn_of_plain_secrets(&shared.config);
    let mut pause = Pause::default();
    loop {
        let ended = once(&shared, &links, &mut pause).await;
        links.send_replace(None);
        if let Err(error) = ended {
            tell!(warn, shared.times, ("nats: {error:#}"), "NATS is away: {error:#}");
        }
        pause.wait().await;
    }
}

/// Makes one connection, and lives as long as it. Returns why it ended or could not be made.
async fn once(shared: &Shared, links: &watch::Sender<Option<Link>>, pause: &mut Pause) -> Result<()> {
    let (events, mut happened) = mpsc::channel(EVENTS);
    let (client, server) = connect(&shared.config, &events).await?;
    drop(events);
    let (link, answers) = Link::new(client, &shared.subjects).await?;
    let _ended = EndsWith(&link);
    let happens = async {
        while let Some(event) = happened.recv().await {
            match event {
                Event::Disconnected | Event::Closed => return,
                Event::ServerError(error) => {
                    tell!(error, shared.times, ("{error}"), "the server of NATS refuses something: {error}");
                    link.refused(error.to_string());
                }
                Event::SlowConsumer(_) => {
                    let line = "messages were lost: they came faster than Main took them";
                    tell!(warn, shared.times, ("slow"), "{line}");
                }
                Event::LameDuckMode => tracing::info!("the server `{server}` is about to stop"),
                _ => {}
            }
        }
    };
    let use_it = async {
        let questions = ask_for_own_name(shared, &link).await?;
        pause.reset();
        tracing::info!("connected to NATS at `{server}`");
        links.send_replace(Some(link.clone()));
        refuse_others(shared, &link, questions).await
    };
    tokio::select! {
        () = happens => bail!("the connection to `{server}` broke"),
        () = link.hand_out(answers) => bail!("the connection to `{server}` broke"),
        refused = use_it => refused,
    }
}

/// Asks whether another bridge has the name. Fails if one has, or if a new one with a smaller number asks, too. Returns
/// the subscription to such questions.
async fn ask_for_own_name(shared: &Shared, link: &Link) -> Result<Subscriber> {
    // The bridge subscribes before it asks, so that two new bridges hear each other.
    let mut questions = link.client().subscribe(shared.subjects.presence()).await?;
    let own = shared.process;
    // A stream that records the subject answers, too.
    let accepts = move |answer: &Message| asker(answer).is_some_and(|other| other != own);
    let ask = link.request(shared.subjects.presence(), HeaderMap::new(), number(shared), accepts);
    let deadline = time::sleep_until(Instant::now() + ANSWER_TIME);
    tokio::pin!(ask, deadline);
    loop {
        tokio::select! {
            answer = &mut ask => match answer {
                Ok(_) => bail!("another bridge calls itself `{}`", shared.subjects.node()),
                Err(NoAnswer::NoResponders) => break,
                Err(error) => return Err(error.into()),
            },
            question = questions.next() => {
                let Some(question) = question else { bail!(NoAnswer::Ended) };
                if asker(&question).is_some_and(|asker| asker < shared.process) {
                    bail!("another bridge calls itself `{}`", shared.subjects.node());
                }
                refuse(shared, link, question).await?;
            }
            () = &mut deadline => break,
        }
    }
    Ok(questions)
}

/// Tells each other bridge that asks for this name that it is taken, until the connection ends.
async fn refuse_others(shared: &Shared, link: &Link, mut questions: Subscriber) -> Result<()> {
    while let Some(question) = questions.next().await {
        refuse(shared, link, question).await?;
    }
    bail!(NoAnswer::Ended)
}

/// Tells another bridge that asks for this name that it is taken. The bridge's own question comes here, too.
async fn refuse(shared: &Shared, link: &Link, question: Message) -> Result<()> {
    if asker(&question) != Some(shared.process)
        && let Some(reply) = question.reply
    {
        let node = shared.subjects.node();
        tell!(error, shared.times, ("another bridge"), "another bridge calls itself `{node}`: it is refused");
        link.client().publish(reply, number(shared)).await?;
    }
    Ok(())
}

/// The number of the process that sent a question or an answer, if it is well formed.
fn asker(question: &Message) -> Option<u64> {
    std::str::from_utf8(&question.payload).ok()?.parse().ok()
}

/// The number of this process, as questions and answers carry it.
fn number(shared: &Shared) -> Bytes {
    shared.process.to_string().into()
}

/// Ends the link when dropped, however the task of the connection ends.
struct EndsWith<'l>(&'l Link);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Warns if a password or a token may be sent to another machine without TLS.
fn warn_of_plain_secrets(config: &Config) {
    let nats = config.nats.as_ref();
    if nats.tls.is_wanted() || (nats.password_file.is_none() && nats.token_file.is_none()) {
        return;
    }
    let servers = nats.servers.as_ref().iter();
    let plain = servers.filter_map(|server| server.as_ref().parse::<ServerAddr>().ok()).find(|server| {
        let is_here = |host: &str| {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        };
        !server.tls_required() && !is_here(server.host().trim_matches(['[', ']']))
    });
    if let Some(server) = plain {
        let host = server.host();
        tracing::warn!(
            "the secret goes to `{host}` in the clear, unless it asks for TLS: set `nats.tls.required`"
        );
    }
}

/// Connects to the first server that takes the bridge, and returns its address, too.
async fn connect(config: &Config, events: &mpsc::Sender<Event>) -> Result<(Client, String)> {
    let nats = config.nats.as_ref();
    let mut last = None;
    for server in nats.servers.as_ref() {
        let server = server.as_ref();
        let connected = time::timeout(CONNECT_TIME, options(config, events)?.connect(server)).await;
        match connected {
            Ok(Ok(client)) => return Ok((client, server.clone())),
            Ok(Err(error)) => last = Some(anyhow::anyhow!("cannot use `{server}`: {error}")),
            Err(_) => last = Some(anyhow::anyhow!("`{server}` does not answer")),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("no server is named")))
}

fn options(config: &Config, events: &mpsc::Sender<Event>) -> Result<ConnectOptions> {
    let (nats, limits) = (config.nats.as_ref(), &config.limits);
    let proof = Arc::new(Proof::read(nats)?);
    let has_connected = Arc::new(AtomicBool::new(false));
    // The client connects again by itself, and would then send what waited. This refuses it: a link is used once.
    let is_connected = has_connected.clone();
    let prove = move |nonce: Vec<u8>| {
        let is_again = has_connected.load(Ordering::Relaxed);
        let proof = proof.clone();
        async move { if is_again { Err(AuthError::new("this connection has ended")) } else { proof.sign(&nonce) } }
    };
    let events = events.clone();
    // Room for all that may come at once, and as much again.
    let most =
        limits.events.size().max(limits.served.size()).max(limits.calls.size()).max(limits.jobs.size());
    let capacity = most.saturating_mul(2);
    let mut options = ConnectOptions::with_auth_callback(prove)
        .name(format!("weir-nats {}", config.node))
        .max_reconnects(1)
        .ignore_discovered_servers()
        .connection_timeout(CONNECT_TIME)
        .ping_interval(nats.ping_interval.get())
        .request_timeout(Some(CONNECT_TIME))
        .custom_inbox_prefix(format!("weir.{}.r.{}", config.fleet, config.node))
        .subscription_capacity(capacity)
        .require_tls(nats.tls.is_wanted())
        .event_callback(move |event| {
            if event == Event::Connected {
                is_connected.store(true, Ordering::Relaxed);
            }
            let events = events.clone();
            // The send fails only after the end of the link, when nobody needs the event.
            async move { drop(events.send(event).await) }
        });
    if nats.tls.first {
        options = options.tls_first();
    }
    if let Some(path) = &nats.tls.ca_file {
        options = options.add_root_certificates(path.clone());
    }
    if let (Some(certificate), Some(key)) = (&nats.tls.certificate_file, &nats.tls.key_file) {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// How the bridge proves its name, with secrets as they are in their files now.
enum Proof {
    None,
    Token(String),
    Password { user: String, password: String },
    Key { seed: String, jwt: Option<String> },
}

impl Proof {
    fn read(nats: &NatsSection) -> Result<Self> {
        Ok(if let Some(path) = &nats.token_file {
            Self::Token(secrets::word(path)?)
        } else if let (Some(user), Some(path)) = (&nats.user, &nats.password_file) {
            Self::Password { user: user.clone(), password: secrets::word(path)? }
        } else if let Some(path) = &nats.nkey_file {
            Self::Key { seed: secrets::word(path)?, jwt: None }
        } else if let Some(path) = &nats.credentials_file {
            let (jwt, seed) = credentials(&secrets::text(path)?)
                .with_context(|| format!("`{}` has no JWT and seed", path.display()))?;
            Self::Key { seed, jwt: Some(jwt) }
        } else {
            Self::None
        })
    }

    fn sign(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let mut auth = Auth::new();
        match self {
            Self::None => {}
            Self::Token(token) => auth.token = Some(token.clone()),
            Self::Password { user, password } => {
                (auth.username, auth.password) = (Some(user.clone()), Some(password.clone()));
            }
            Self::Key { seed, jwt } => {
                let key = nkeys::KeyPair::from_seed(seed).map_err(AuthError::new)?;
                auth.signature = Some(key.sign(nonce).map_err(AuthError::new)?);
                match jwt {
                    Some(jwt) => auth.jwt = Some(jwt.clone()),
                    None => auth.nkey = Some(key.public_key()),
                }
            }
        }
        Ok(auth)
    }
}

/// The JWT and the seed of a `.creds` file.
fn credentials(text: &str) -> Option<(String, String)> {
    let block = |name: &str| {
        let (_, rest) = text.split_once(&format!("BEGIN {name}"))?;
        let mut lines = rest.lines().skip(1).map(str::trim);
        lines.find(|line| !line.is_empty() && !line.starts_with('-')).map(ToOwned::to_owned)
    };
    Some((block("NATS USER JWT")?, block("USER NKEY SEED")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credentials_file_has_a_jwt_and_a_seed() {
        let text = "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.aGk\n------END NATS USER JWT------\n\n\
                    ************************* IMPORTANT *************************\nNKEY Seed printed below.\n\n\
                    -----BEGIN USER NKEY SEED-----\nSUAKEY\n------END USER NKEY SEED------\n";
        assert_eq!(credentials(text), Some(("eyJ0.eyJq.aGk".to_owned(), "SUAKEY".to_owned())));
        assert_eq!(credentials("SUAKEY"), None);
    }

    #[test]
    fn an_nkey_signs_the_servers_nonce() {
        let key = nkeys::KeyPair::new_user();
        let proof = Proof::Key { seed: key.seed().unwrap(), jwt: None };
        let auth = proof.sign(b"nonce").unwrap();
        key.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        assert_eq!(auth.nkey, Some(key.public_key()));
        assert!(Proof::Key { seed: "SUX".to_owned(), jwt: None }.sign(b"nonce").is_err());
    }
}
