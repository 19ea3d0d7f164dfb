//! Sends letters through one queue and receives them from another: the contract `courier@1`.
//!
//! Keys of its `config` table name the queues: `outgoing` and `incoming`, each optional. The operator must grant the
//! first by `puts` and the second by `takes`. Where a bridge carries the queues, the reader is on another machine.
//!
//! It has one error of its own: `no-outgoing`.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    process::ExitCode,
};

use weir_contracts::courier::{self, Letter, Letters, Received};
use weir_sdk::{Context, Empty, Error, Extension, Manifest, Queue, log};

weir_sdk::manifest! {
    id: "courier",
    fulfills: &[courier::CONTRACT],
    publishes: &[courier::ARRIVED.pattern()],
}

/// Letters that `received` lists: the latest.
const REMEMBERED: usize = 100;

fn main() -> ExitCode {
    extension(MANIFEST).run()
}

fn extension(manifest: Manifest) -> Extension<Courier> {
    Extension::new(manifest, Courier::default())
        .on_start(async |courier: &Courier, context: &Context| {
            courier.outgoing.set(queue(context, "outgoing")?);
            courier.incoming.set(queue(context, "incoming")?);
            Ok(())
        })
        .on(courier::SEND, async |courier: &Courier, context: &Context, letter| {
            courier.send(context, &letter)
        })
        .on(courier::RECEIVED, async |courier: &Courier, _: &Context, _: Empty| Ok(courier.received()))
        .background(Courier::receive)
}

#[derive(Default)]
struct Courier {
    outgoing: Cell<Option<Queue<Letter>>>,
    incoming: Cell<Option<Queue<Letter>>>,
    received: RefCell<VecDeque<Received>>,
}

impl Courier {
    fn send(&self, context: &Context, letter: &Letter) -> Result<Empty, Error> {
        let outgoing = self.outgoing.get();
        let outgoing =
            outgoing.ok_or_else(|| Error::handler("no-outgoing", "`config.outgoing` names no queue"))?;
        context.put(outgoing, letter)?;
        Ok(Empty {})
    }

    fn received(&self) -> Letters {
        Letters { letters: self.received.borrow().iter().cloned().collect() }
    }

    async fn receive(&self, context: &Context) -> Result<(), Error> {
        let Some(incoming) = self.incoming.get() else { return Ok(()) };
        loop {
            let job = context.take(incoming).await?;
            let letter = Received { text: job.payload.text.clone(), deliveries: job.deliveries };
            if let Err(error) = context.publish(courier::ARRIVED.at(incoming.name()), &letter) {
                log::warn("a letter could not be published", &[("error", &error)]);
            }
            let mut received = self.received.borrow_mut();
            if received.len() == REMEMBERED {
                received.pop_front();
            }
            received.push_back(letter);
            job.done()?;
        }
    }
}

/// The queue that a key of the configuration names. `None` if the key is not there.
fn queue(context: &Context, key: &str) -> Result<Option<Queue<Letter>>, Error> {
    // A queue's name must live as long as the program. Leaking is harmless: there are two names at most.
    Ok(context.config(key)?.map(|name| Queue::new(name.leak())))
}

#[cfg(test)]
mod tests {
    use weir_sdk::testing::{Harness, JobState};

    use super::*;

    const INCOMING: Queue<Letter> = Queue::new("to-kitchen");

    /// The memory of a test asks the manifest where a Main asks its operator.
    fn courier() -> Harness {
        Harness::new(extension(Manifest { puts: &["to-cellar"], takes: &["to-kitchen"], ..MANIFEST }))
    }

    fn letter() -> Letter {
        Letter { text: "milk is out".to_owned() }
    }

    #[test]
    fn a_letter_is_put_into_the_outgoing_queue() {
        let main = courier();
        main.config("outgoing", "to-cellar");
        main.call(courier::SEND, &letter()).unwrap();
        let refused = courier().call(courier::SEND, &letter()).unwrap_err();
        assert!(refused.to_string().contains("no-outgoing"), "{refused}");
    }

    #[test]
    fn a_letter_that_comes_is_published_remembered_and_done() {
        let main = courier();
        main.config("incoming", INCOMING.name());
        main.start().unwrap();
        let job = main.put(INCOMING, &letter());
        assert_eq!(main.job(job), JobState::Done);
        let came = Received { text: letter().text, deliveries: 1 };
        assert_eq!(main.call(courier::RECEIVED, &Empty {}).unwrap().letters, [came]);
        let topics: Vec<_> = main.published().into_iter().map(|event| event.topic).collect();
        assert_eq!(topics, ["courier.received.to-kitchen"]);
    }
}
