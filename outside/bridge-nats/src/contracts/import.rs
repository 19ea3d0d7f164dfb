//! Imported contracts: the bridge serves them here, and asks other nodes.

use std::{fs, sync::Arc};

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use tokio::task::JoinSet;
use weir_names::{Error, rules::is_queue_name};
use weir_peer::{Peer, Request};

use super::is_for_nobody;
use crate::{
    bridge::Links,
    config::{ImportContract, Origin, Prefer},
    link::{Link, NoAnswer},
    sessions::{Served, Sessions},
    shared::{Shared, tell},
    wire,
};

/// Most members of a queue group that are asked until one serves the call. A member that does not serve leaves the
/// group before it answers, so the next question comes to another one.
const TRIES: usize = 16;

/// Serves all imported contracts. Returns once all are served that Main allows.
pub(crate) async fn import(sessions: &Sessions, links: &Links, tasks: &mut JoinSet<()>) {
    let shared = &sessions.shared;
    for (name, import) in &shared.config.import.contracts {
        let here = import.alias.as_ref().unwrap_or(name).as_ref().as_str();
        let imported = Imported {
            shared: shared.clone(),
            peer: sessions.calls.clone(),
            links: links.clone(),
            name: name.as_ref().as_str().into(),
            here: here.into(),
            import: import.clone(),
        };
        let served = Served {
            shared: shared.clone(),
            peer: sessions.calls.clone(),
            name: here.into(),
            operations: import.operations.as_ref().iter().map(ToString::to_string).collect(),
            what: "which is imported",
        };
        let (imported, offered) = (Arc::new(imported), served.offer().await);
        tasks.spawn(served.run(offered, move |request| handle(imported.clone(), request)));
    }
    describe(shared, &sessions.calls).await;
}

/// Tells Main the types of contracts, where the file names documents.
async fn describe(shared: &Shared, peer: &Peer) {
    let described = shared.config.import.contracts.values().filter_map(|import| import.description.as_ref());
    let read = described.filter_map(|path| {
        let text = fs::read_to_string(path);
        text.inspect_err(|error| tracing::error!("cannot read `{}`: {error}", path.display())).ok()
    });
    let documents: Vec<_> = read.collect();
    if documents.is_empty() {
        return;
    }
    if let Err(error) = peer.describe(format!("[{}]", documents.join(","))).await {
        tracing::error!("Main refuses a description of an imported contract: {error}");
    }
}

/// Answers a request, or tells the node that it is given up.
async fn handle(imported: Arc<Imported>, request: Request) {
    let mut sent = Sent::default();
    tokio::select! {
        answer = imported.ask(&request, &mut sent) => match answer {
            Ok(payload) => request.answer(Ok(payload)).await,
            // This Main gives the request up by itself a moment later. An answer before that would tell of the timeout
            // of another Main.
            Err(Error::Timeout) => request.given_up().await,
            Err(error) => request.refuse(error).await,
        },
        () = request.given_up() => {
            if let Sent { link: Some(link), number: Some(number) } = sent {
                let subject = imported.shared.subjects.cancel(&imported.name);
                // If the link has ended, so has the call.
                drop(link.client().publish(subject, number.into()).await);
            }
        }
    }
}

/// A request to a node that is under way.
#[derive(Default)]
struct Sent {
    link: Option<Link>,
    /// The subject of its answer, while that is awaited.
    number: Option<String>,
}

/// One imported contract.
struct Imported {
    shared: Arc<Shared>,
    peer: Peer,
    links: Links,
    /// The contract's name in the fleet.
    name: Box<str>,
    /// The contract's name at this Main.
    here: Box<str>,
    import: ImportContract,
}

impl Imported {
    /// The answer of another node, or of this one.
    async fn ask(&self, request: &Request, sent: &mut Sent) -> Result<Bytes, Error> {
        let (name, operation) = (&*self.name, request.operation());
        if Shared::is_bridge(request.sender()) {
            return Err(Error::PermissionDenied(format!(
                "`{}` is a bridge, too: a call crosses one bridge alone",
                request.sender()
            )));
        }
        if self.shared.is_draining() {
            return Err(Error::NoProvider(format!("the bridge to `{name}` stops")));
        }
        let prefers_local = self.import.alias.is_some()
            && self.import.prefer.as_ref().is_none_or(|prefer| *prefer.as_ref() == Prefer::Local);
        if prefers_local {
            let peer = self.peer.part_of(request.trace());
            let call = peer.operation(name, operation).timeout(request.remaining());
            match call.send(request.payload().clone()).await {
                // The call was delivered to nobody, so another node is asked.
                Err(
                    Error::NoProvider(_)
                    | Error::UnknownContract(_)
                    | Error::NotReady(_)
                    | Error::Overloaded(_)
                    | Error::LimitExceeded { .. },
                ) => {}
                // The bridge may not call this node's own contract, so it asks another node.
                Err(Error::PermissionDenied(text)) => {
                    let here = &self.here;
                    tell!(
                        warn,
                        self.shared.times,
                        ("local {name}"),
                        "this node's `{name}` is not asked for `{here}`: {text}"
                    );
                }
                answer => return answer,
            }
        }
        let Some(link) = self.links.borrow().clone().filter(|link| !link.has_ended()) else {
            return Err(Error::NoProvider(format!("`{name}` is on other nodes, and NATS is away")));
        };
        self.ask_nodes(&link, request, sent).await
    }

    /// The answer of the first node that serves the call.
    async fn ask_nodes(&self, link: &Link, request: &Request, sent: &mut Sent) -> Result<Bytes, Error> {
        let mut nobody = None;
        let from = self.import.from.as_ref();
        // A named node is asked once. For `*` the server chooses a node at each question, so several are asked.
        let nodes = from.iter().flat_map(|origin| match origin {
            Origin::Node(node) => vec![Some(node)],
            Origin::Any => vec![None; TRIES],
        });
        for node in nodes {
            let subject = self.shared.subjects.call(node, &self.name, request.operation());
            sent.link = Some(link.clone());
            let (headers, payload) = (self.headers(request), request.payload().clone());
            // Accepts an answer of a node that was asked. A stream that records the subject answers, too, but is no
            // node.
            let asked = node.cloned();
            let accepts = move |answer: &Message| {
                let node = wire::header(answer.headers.as_ref(), wire::NODE);
                node.is_some_and(|node| {
                    asked.as_ref().map_or(is_queue_name(node), |asked| asked.as_str() == node)
                })
            };
            let answer = link.request_told(subject, headers, payload, accepts, &mut sent.number).await;
            sent.number = None;
            match answer {
                Ok(message) => {
                    let error = wire::header(message.headers.as_ref(), wire::ERROR).map(wire::read);
                    match error {
                        None => return Ok(message.payload),
                        // The call was delivered to nobody on that node, so the next one is asked.
                        Some(error) if is_for_nobody(&error) => nobody = Some(error),
                        Some(error) => return Err(error),
                    }
                }
                Err(NoAnswer::NoResponders) if node.is_none() => break,
                Err(NoAnswer::NoResponders) => {}
                Err(NoAnswer::Refused) => {
                    let what = format!("`{}` of another node", self.name);
                    nobody = Some(Error::PermissionDenied(format!("{what}: {}", NoAnswer::Refused)));
                    if node.is_none() {
                        break;
                    }
                }
                Err(NoAnswer::Ended) => return Err(Error::PeerGone),
                Err(NoAnswer::TooLarge { bytes, allowed }) => return Err(Error::TooLarge { bytes, allowed }),
            }
        }
        Err(nobody.unwrap_or_else(|| Error::NoProvider(format!("no node serves `{}` now", self.name))))
    }

    fn headers(&self, request: &Request) -> HeaderMap {
        let mut headers = wire::headers(&self.shared.subjects, request.sender());
        headers.insert(wire::REMAINING, request.remaining().as_millis().to_string());
        if let Some(span) = request.trace() {
            headers.insert(wire::TRACE, span.to_string());
        }
        headers
    }
}
