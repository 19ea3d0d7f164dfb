//! The replies of an inbox: those still to come, and the room that the oldest events make for them.

use super::{Inbox, lane::Weigh, lanes::wake};
use crate::{id::ReaderId, message::Reply};
use weir_names::Error;

impl Inbox {
    pub(crate) fn expect_reply(&self, reader: ReaderId) {
        if let Some(own) = self.lanes.lock().reader(reader) {
            own.expected += 1;
        }
    }

    pub(crate) fn expect_no_reply(&self, reader: ReaderId) {
        if let Some(own) = self.lanes.lock().reader(reader) {
            own.expected = own.expected.saturating_sub(1);
        }
        self.wake();
    }

    /// Appends the reply that `reader` expects; an ended reader gets none. Returns how many of the oldest events made
    /// room for it.
    pub(crate) fn push_reply(&self, mut reply: Reply, reader: ReaderId) -> u32 {
        let mut lanes = self.lanes.lock();
        let (allowed, waiting) = (lanes.limits.bytes, lanes.reply_bytes());
        let Some(own) = lanes.reader(reader) else { return 0 };
        // An empty lane takes any reply: a larger one was refused as too large.
        if waiting > 0 && waiting + reply.bytes() > allowed {
            let used = waiting + reply.bytes();
            reply.outcome = Err(Error::LimitExceeded { name: "inbox.bytes".into(), used, allowed });
        }
        own.replies.push_back(reply);
        let mut dropped = 0;
        while lanes.reply_bytes() + lanes.events.bytes > allowed && lanes.events.drop_oldest() {
            dropped += 1;
        }
        lanes.note_peak();
        wake(lanes);
        dropped
    }
}
