//! Hands events to their handlers, to each one after the other, in the order in which they came.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

use futures_util::future::LocalBoxFuture;

use crate::{
    Context, Event,
    context::Origin,
    host::{self, Peer},
    link::Link,
    log,
    program::EventHandler,
};

/// Events that may wait for one waiting handler: as many as Main lets wait in an inbox by default. Beyond that the
/// oldest are lost, and the handler sees how many.
///
/// They cannot stay in the inbox: it gives out the events of all subscriptions or of none, and the handler may be
/// waiting for an event of another subscription.
const WAITING: usize = 256;

pub(super) struct Events {
    /// The lane of each subscription, after the subscription's number.
    lanes: Vec<(u32, Rc<Lane>)>,
    any: Option<Rc<Lane>>,
}

struct Lane {
    handler: EventHandler,
    waiting: RefCell<VecDeque<(Peer, Event<Vec<u8>>)>>,
    busy: Cell<bool>,
}

impl Events {
    pub(super) fn new(any: Option<EventHandler>) -> Self {
        Self { lanes: Vec::new(), any: any.map(Lane::new) }
    }

    pub(super) fn add(&mut self, subscription: u32, handler: EventHandler) {
        self.lanes.push((subscription, Lane::new(handler)));
    }

    /// The future that handles an event. `None` if the handler is busy and will get to the event, or if there is none.
    pub(super) fn start(&self, link: &Rc<Link>, event: host::Event) -> Option<LocalBoxFuture<'static, ()>> {
        let own = self.lanes.iter().find(|(subscription, _)| *subscription == event.subscription);
        let lane = own.map(|(_, lane)| lane).or(self.any.as_ref())?;
        let topic = event.topic.unwrap_or_else(|| link.topic_of(event.subscription));
        let host::Event { sender, sequence, lost, retained, payload, .. } = event;
        lane.push(sender, Event { topic, sequence, lost, retained, payload });
        if lane.busy.replace(true) {
            return None;
        }
        Some(Box::pin(lane.clone().handle_all(link.clone())))
    }
}

impl Lane {
    fn new(handler: EventHandler) -> Rc<Self> {
        Rc::new(Self { handler, waiting: RefCell::default(), busy: Cell::new(false) })
    }

    fn push(&self, sender: Peer, event: Event<Vec<u8>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back((sender, event));
        if waiting.len() > WAITING
            && let Some((_, oldest)) = waiting.pop_front()
            && let Some((_, next)) = waiting.front_mut()
        {
            next.lost = next.lost.saturating_add(oldest.lost).saturating_add(1);
        }
    }

    async fn handle_all(self: Rc<Self>, link: Rc<Link>) {
        while let Some((sender, event)) = self.next() {
            let topic = event.topic.clone();
            let context = Context::new(link.clone(), Origin::Sent(sender));
            if let Err(error) = (self.handler)(context, event).await {
                log::warn("an event was not handled", &[("topic", &topic), ("error", &error)]);
            }
        }
        self.busy.set(false);
    }

    fn next(&self) -> Option<(Peer, Event<Vec<u8>>)> {
        self.waiting.borrow_mut().pop_front()
    }
}
