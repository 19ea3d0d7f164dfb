//! An exported contract as it is served: its calls, their ends, and this node's place in the queue group.
//!
//! A node whose Main has no provider leaves the queue group, so that other nodes get its share.

use std::{
    future::pending,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{sync::Semaphore, task::JoinSet, time};
use weir_names::Error;

use super::{
    export::{Call, Exported},
    is_for_nobody,
    services::Endpoint,
};
use crate::{
    link::Link,
    shared::{Pause, tell},
    subject,
};

/// Time for the server to end the subscriptions that this node leaves.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// The longest pause before Main is asked again whether there is a provider.
const AGAIN: Duration = Duration::from_secs(1);

/// Time for Main to say whether there is a provider.
const PROVIDER_TIME: Duration = Duration::from_secs(1);

/// An operation of no contract. Main looks for the provider first, so its error says whether there is one.
const NO_OPERATION: &str = "is-anybody-there?";

/// One exported contract, while both connections last.
pub(super) struct Serving {
    exported: Arc<Exported>,
    /// The room for calls of all contracts together.
    room: Arc<Semaphore>,
    /// This node's share of the calls to any node.
    shared_calls: Subscriber,
    own_calls: Subscriber,
    cancels: Subscriber,
    /// Calls under way, of which there are no more than there is room for.
    in_hand: JoinSet<(Call, Result<Bytes, Error>)>,
    /// While this node is out of the queue group: the wait until there is a provider again.
    away: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What is to be done next.
enum Next {
    Call(Call),
    Cancel(Message),
    Answer(Call, Result<Bytes, Error>),
    /// There is a provider here again, so this node returns to the queue group.
    Return,
}

impl Serving {
    /// Subscribes to the calls of a contract.
    pub(super) async fn begin(exported: Exported, room: Arc<Semaphore>) -> Result<Self> {
        let cancels = exported.shared.subjects.cancels(&exported.name);
        let cancels = exported.link.client().subscribe(cancels).await?;
        let own_calls = join(&exported, Endpoint::Own).await?;
        let shared_calls = join(&exported, Endpoint::Any).await?;
        let exported = Arc::new(exported);
        Ok(Self { exported, room, shared_calls, own_calls, cancels, in_hand: JoinSet::new(), away: None })
    }

    /// Serves until the link ends, or the session; or until the bridge drains and nothing is in hand.
    pub(super) async fn run(mut self) {
        let (mut draining, peer) = (self.exported.shared.draining(), self.exported.peer.clone());
        loop {
            let next = tokio::select! {
                next = self.next() => next,
                _ = peer.closed() => break,
                () = draining.wait() => break,
            };
            match next {
                Some(next) => self.act(next).await,
                None => return,
            }
        }
        // Other nodes get what comes from now on. What has come before is answered, too.
        self.away = None;
        Link::leave(&mut self.shared_calls).await;
        Link::leave(&mut self.own_calls).await;
        let link = self.exported.link.clone();
        let mut settled = pin!(time::timeout(LEAVE_TIME, link.settle()));
        let mut is_settled = false;
        while !is_settled || !self.in_hand.is_empty() {
            let next = tokio::select! {
                // In this order, so that all that has come is done before the end.
                biased;
                next = self.next() => next,
                _ = &mut settled, if !is_settled => {
                    is_settled = true;
                    continue;
                }
            };
            match next {
                Some(next) => self.act(next).await,
                None => return,
            }
        }
    }

    /// Waits for what is to be done next. `None` once the link has ended. Nothing is lost if the wait is given up.
    async fn next(&mut self) -> Option<Next> {
        let Self { shared_calls, own_calls, cancels, in_hand, away, .. } = self;
        loop {
            let is_away = away.is_some();
            let back = async {
                match away.as_mut() {
                    Some(away) => away.await,
                    None => pending().await,
                }
            };
            return Some(tokio::select! {
                Some(call) = shared_calls.next() => Next::Call(Call::new(call, Endpoint::Any)),
                Some(call) = own_calls.next() => Next::Call(Call::new(call, Endpoint::Own)),
                Some(cancel) = cancels.next() => Next::Cancel(cancel),
                Some(ended) = in_hand.join_next() => match ended {
                    Ok((call, outcome)) => Next::Answer(call, outcome),
                    Err(_given_up) => continue,
                },
                () = back, if is_away => Next::Return,
                else => return None,
            });
        }
    }

    async fn act(&mut self, next: Next) {
        match next {
            Next::Call(call) => self.take(call).await,
            Next::Cancel(cancel) => self.exported.give_up(&cancel),
            Next::Answer(call, outcome) => {
                // Before the answer: the caller then asks another node, not this one again.
                if let Err(error) = &outcome
                    && is_for_nobody(error)
                {
                    self.leave(error).await;
                }
                self.exported.answer(&call, outcome).await;
            }
            Next::Return => {
                self.away = None;
                // A failure means that the link has ended.
                if let Ok(calls) = join(&self.exported, Endpoint::Any).await {
                    self.shared_calls = calls;
                    tracing::info!("`{}` has a provider here again", self.exported.name);
                }
            }
        }
    }

    /// Begins to carry a call out, if it may and there is room.
    async fn take(&mut self, call: Call) {
        let exported = &self.exported;
        let refusal = match exported.accept(&call) {
            Ok(asked) => match exported.make_room(&self.room) {
                Ok(permit) => {
                    let number = call.message.reply.as_ref().map(ToString::to_string);
                    let task = self.in_hand.spawn(exported.clone().carry_out(call, asked, permit));
                    if let Some(number) = number {
                        exported.under_way.lock().insert(number, task);
                    }
                    return;
                }
                Err(error) => error,
            },
            Err(Some(error)) => error,
            // The caller does not listen there. An answer would let it send messages of this node wherever it likes.
            Err(None) => return,
        };
        exported.answer(&call, Err(refusal)).await;
    }

    /// Leaves the queue group until there is a provider again. Does nothing if this node has left it, or the bridge
    /// drains.
    async fn leave(&mut self, because: &Error) {
        if self.away.is_some() || self.exported.shared.is_draining() {
            return;
        }
        Link::leave(&mut self.shared_calls).await;
        let Exported { name, shared, .. } = &*self.exported;
        tell!(
            warn,
            shared.times,
            ("nobody serves {name}"),
            "other nodes get the calls of `{name}`, which has no provider here: {because}"
        );
        self.away = Some(Box::pin(until_provided(self.exported.clone())));
    }
}

/// Subscribes to calls of the contract, to any node or to this one, within its queue group.
async fn join(exported: &Exported, endpoint: Endpoint) -> Result<Subscriber> {
    let Exported { link, shared, name, .. } = exported;
    let calls = shared.subjects.calls(endpoint == Endpoint::Own, name);
    Ok(link.client().queue_subscribe(calls, subject::token(name)).await?)
}

/// Asks Main again and again whether the contract has a provider, until it says so.
async fn until_provided(exported: Arc<Exported>) {
    // Once this returns, nothing is on its way to the old subscription. If the link has ended, the task that waits for
    // this function ends, too.
    let _ended = exported.link.settle().await;
    let mut pause = Pause::up_to(AGAIN);
    loop {
        pause.wait().await;
        let question = exported.peer.operation(&exported.name, NO_OPERATION).timeout(PROVIDER_TIME);
        let answer = question.send(Bytes::new()).await;
        if matches!(answer, Ok(_) | Err(Error::Invalid(_) | Error::PermissionDenied(_) | Error::Handler(_))) {
            return;
        }
    }
}
