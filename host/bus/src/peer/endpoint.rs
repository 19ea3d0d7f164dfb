//! A peer as the waiters of its requests see it.

use std::sync::Arc;

use bytes::Bytes;

use super::Peer;
use crate::{
    id::{MessageId, PeerId, ReaderId},
    message::Reply,
    waiter::Endpoint,
};
use weir_names::Error;

impl Endpoint for Peer {
    fn id(&self) -> PeerId {
        self.id()
    }

    fn name(&self) -> &str {
        self.name()
    }

    fn is_starting(&self) -> bool {
        self.is_starting()
    }

    fn note_abandoned(&self) {
        self.inbox().note_abandoned();
    }

    fn reply(&self, id: MessageId, outcome: Result<Bytes, Error>, reader: ReaderId) {
        let lost = self.inbox().push_reply(Reply { id, outcome }, reader);
        self.count_lost(lost);
    }

    fn expect_no_reply(&self, reader: ReaderId) {
        self.inbox().expect_no_reply(reader);
    }
}

impl Endpoint for Arc<Peer> {
    fn id(&self) -> PeerId {
        (**self).id()
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn is_starting(&self) -> bool {
        (**self).is_starting()
    }

    fn note_abandoned(&self) {
        Endpoint::note_abandoned(&**self);
    }

    fn reply(&self, id: MessageId, outcome: Result<Bytes, Error>, reader: ReaderId) {
        Endpoint::reply(&**self, id, outcome, reader);
    }

    fn expect_no_reply(&self, reader: ReaderId) {
        Endpoint::expect_no_reply(&**self, reader);
    }
}
