//! Requests for which the host calls functions, in place of a guest that takes them itself.

use bytes::Bytes;
use weir_bus::{Carried, Error, MessageId, Request};
use weir_metrics::moment;

use super::{Delivery, Handling, Unanswered, held::HeldCall};

impl Delivery {
    /// Notes that the host begins to call a function for a request in hand.
    pub(crate) fn begin_call(&mut self, id: u64) {
        let message = MessageId(id);
        if let Some(request) = self.in_hand.responder(message) {
            let (sender, operation) = (request.sender(), request.operation().clone());
            let call = HeldCall { message, sender, operation };
            self.held.hold_call(moment(std::time::Instant::now()), call);
        }
    }

    /// Notes that the function has returned.
    pub(crate) fn end_call(&self) {
        self.held.end_call();
    }

    /// What a request in hand carries, which came with this payload.
    pub(crate) fn carried(&mut self, id: u64, payload: Bytes) -> Carried {
        match self.in_hand.take_values(MessageId(id)) {
            Some(values) => Carried::Values(values),
            None => Carried::Payload(payload),
        }
    }

    /// Takes a request out of hand that is answered with its failure.
    pub(crate) fn give_up(&mut self, id: u64) -> Option<(Handling, Unanswered)> {
        let handling = self.in_hand.handling_of(MessageId(id))?;
        let (responder, was_full) = self.in_hand.remove(MessageId(id))?;
        self.show_in_hand();
        if was_full {
            self.peer.hold_requests(false);
        }
        Some((handling, Unanswered::new(vec![responder], Error::Trapped)))
    }

    /// Writes the values of a request as its payload, for a guest that takes none: another program had this inbox when they
    /// were sent. A request whose payload would be too large is answered so, and none is returned.
    pub(super) fn with_payload(&mut self, mut request: Request) -> Option<Request> {
        let Some(values) = request.values.take_if(|_| !self.takes_values) else { return Some(request) };
        match values.payload(self.peer.limits().message_size) {
            Ok(payload) => {
                request.payload = payload;
                Some(request)
            }
            Err(error) => {
                self.has_refused = true;
                self.peer.count_refused();
                request.responder.give(Err(error));
                None
            }
        }
    }
}
