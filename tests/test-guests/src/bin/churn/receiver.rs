//! Receives, and records each message in the ledger before anything else.

use fastrand::Rng;
use test_guests::{
    churn::{BATCH, Begun, HOARD, Handled, Heard, Manner, RECEIVERS},
    words::text,
};
use weir_sdk::raw::{
    channel::{self, BatchOrder, Message},
    types::{Error, MessageId},
};

use crate::{
    end,
    ledger::{Ledger, decode, encode},
};

pub(crate) fn run(ledger: &Ledger, begun: &Begun, id: Option<&str>) -> Result<(), String> {
    let receiver = RECEIVERS.iter().find(|receiver| Some(receiver.id) == id);
    if let Some(receiver) = receiver {
        channel::serve(&format!("{}@1", receiver.id), &["ask".to_owned()]).map_err(text)?;
    }
    let mut hand = Hand { ledger, instance: begun.instance, requests: Vec::new() };
    match receiver.map_or(Manner::Single, |receiver| receiver.manner) {
        Manner::Single => {
            while let Some(message) = channel::receive() {
                hand.take(message)?;
                hand.empty()?;
            }
        }
        Manner::InOrder => {
            while let Some(batch) = batch(BatchOrder::InOrder)? {
                for message in batch {
                    hand.take(message)?;
                    hand.empty()?;
                }
            }
        }
        Manner::AnyOrder => {
            while let Some(batch) = batch(BatchOrder::AnyOrder)? {
                batch.into_iter().try_for_each(|message| hand.take(message))?;
                hand.empty()?;
            }
        }
        Manner::Hoard => hand.hoard()?,
    }
    if Rng::with_seed(begun.seed).bool() {
        // It ignores the stop.
        ledger.hold(false);
    }
    hand.empty()
}

/// The next messages. None means stop.
fn batch(order: BatchOrder) -> Result<Option<Vec<Message>>, String> {
    let batch = channel::receive_batch(BATCH, order, None).map_err(text)?;
    Ok((!batch.is_empty()).then_some(batch))
}

struct Hand<'a> {
    ledger: &'a Ledger,
    instance: u32,
    requests: Vec<(MessageId, Handled)>,
}

impl Hand<'_> {
    /// Until stop, takes up to [`HOARD`] requests before it answers the first.
    fn hoard(&mut self) -> Result<(), String> {
        loop {
            let next =
                if self.requests.is_empty() { Ok(channel::receive()) } else { channel::receive_within(0) };
            match next {
                Ok(Some(message)) => self.take(message)?,
                Ok(None) => return Ok(()),
                Err(Error::Timeout) => self.empty()?,
                Err(error) => return Err(text(error)),
            }
            if self.requests.len() == HOARD {
                self.empty()?;
            }
        }
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Request(request) => {
                let handled = Handled { by: self.instance, ask: decode(&request.payload)? };
                self.ledger.handled(handled)?;
                self.requests.push((request.id, handled));
                Ok(())
            }
            Message::Event(event) => {
                let heard = Heard {
                    by: self.instance,
                    subscription: event.subscription,
                    sequence: event.sequence,
                    lost: event.lost,
                    ask: decode(&event.payload)?,
                };
                self.ledger.heard(heard)?;
                end(self.ledger, heard.ask.deed);
                Ok(())
            }
            Message::Response(_) => self.ledger.complain("a response to one that sends nothing"),
            Message::Job(_) => self.ledger.complain("a job to one that takes none"),
        }
    }

    /// Does what the requests in hand ask for, from the last to the first.
    fn empty(&mut self) -> Result<(), String> {
        while let Some((id, handled)) = self.requests.pop() {
            end(self.ledger, handled.ask.deed);
            channel::respond(id, Ok(&encode(&handled)?)).map_err(text)?;
        }
        Ok(())
    }
}
