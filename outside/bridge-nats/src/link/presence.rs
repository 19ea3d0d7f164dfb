//! Two bridges with one name: the second one is refused.
//!
//! A bridge asks for its own name, and answers when asked for it. The newcomer hears the one that is there, and stays out.
//! If both are new, the one with the larger number stays out. The subject has the node's name, so that a server with
//! permissions lets nobody else answer.

use std::time::Duration;

use anyhow::{Result, bail};
use async_nats::{HeaderMap, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{self, Instant};

use super::{Link, NoAnswer};
use crate::shared::Shared;

/// Time for another bridge to answer. One that has died leaves a subscription without an answer for a while.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// Asks whether another bridge has the name. Gives the questions of others that come from then on.
pub(super) async fn check(shared: &Shared, link: &Link) -> Result<Subscriber> {
    // Both of two new ones hear each other while they ask.
    let mut questions = link.client().subscribe(shared.subjects.presence()).await?;
    let mut sent = None;
    let own = shared.process;
    // A stream that records the subject answers, too.
    let accepts = move |answer: &Message| asker(answer).is_some_and(|other| other != own);
    let ask =
        link.request_of(shared.subjects.presence(), HeaderMap::new(), number(shared), &mut sent, accepts);
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

/// Refuses others until the connection ends.
pub(super) async fn answer(shared: &Shared, link: &Link, mut questions: Subscriber) -> Result<()> {
    while let Some(question) = questions.next().await {
        refuse(shared, link, question).await?;
    }
    bail!(NoAnswer::Ended)
}

/// A bridge that asks hears itself, too.
async fn refuse(shared: &Shared, link: &Link, question: Message) -> Result<()> {
    if asker(&question) != Some(shared.process)
        && let Some(reply) = question.reply
    {
        if let Some(times) = shared.times.once_more("another bridge") {
            let node = shared.subjects.node();
            tracing::error!(times, "another bridge calls itself `{node}`: it is refused");
        }
        link.client().publish(reply, number(shared)).await?;
    }
    Ok(())
}

fn asker(question: &Message) -> Option<u64> {
    std::str::from_utf8(&question.payload).ok()?.parse().ok()
}

fn number(shared: &Shared) -> Bytes {
    shared.process.to_string().into()
}
