//! Messages of one kind that wait in order: in an async-channel, behind a front of those taken out of it before.
//!
//! Nothing here waits or is bounded: the caller bounds the messages, and waits for those of all kinds at once.

use std::collections::VecDeque;

use async_channel::{Receiver, Sender};

/// A channel that is made with its first message, so that an unused one takes no memory. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Channel<T>(Option<Box<Ends<T>>>);

#[derive(Debug)]
struct Ends<T> {
    /// Messages that were put back, passed over or listed. They come before the messages in the channel.
    front: VecDeque<Box<T>>,
    sender: Sender<Box<T>>,
    receiver: Receiver<Box<T>>,
    /// How many are in the channel.
    sent: usize,
}

impl<T> Channel<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |ends| ends.front.len() + ends.sent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push_back(&mut self, item: T) {
        let ends = self.ends();
        // Cannot fail: the channel is unbounded, and open as long as both ends are here.
        ends.sent += usize::from(ends.sender.try_send(Box::new(item)).is_ok());
    }

    pub(crate) fn push_front(&mut self, item: T) {
        self.ends().front.push_front(Box::new(item));
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.take(|_| true, || Some(())).map(|(item, ())| item)
    }

    /// Takes the first message for which `is_meant`, if `permit` gives a permit for it. Messages before it move to the
    /// front, in order; so does the message itself if there is no permit.
    pub(crate) fn take<P>(
        &mut self,
        is_meant: impl Fn(&T) -> bool,
        permit: impl FnOnce() -> Option<P>,
    ) -> Option<(T, P)> {
        let ends = self.0.as_mut()?;
        if let Some(place) = ends.front.iter().position(|item| is_meant(item)) {
            let permit = permit()?;
            let item = ends.front.remove(place)?;
            if ends.front.is_empty() {
                // Gives back the memory of a burst.
                ends.front.shrink_to(64);
            }
            return Some((*item, permit));
        }
        let item = loop {
            let item = ends.receive()?;
            if is_meant(&item) {
                break item;
            }
            ends.front.push_back(item);
        };
        let Some(permit) = permit() else {
            ends.front.push_back(item);
            return None;
        };
        Some((*item, permit))
    }

    /// Moves messages to the front until it has `max`, and returns the front. `None` if there was never a message.
    pub(crate) fn first(&mut self, max: usize) -> Option<&mut VecDeque<Box<T>>> {
        let ends = self.0.as_mut()?;
        while ends.front.len() < max
            && let Some(item) = ends.receive()
        {
            ends.front.push_back(item);
        }
        Some(&mut ends.front)
    }

    /// Takes out the messages for which `is_meant`, and keeps the rest in order.
    pub(crate) fn extract(&mut self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        let Some(all) = self.first(usize::MAX) else { return Vec::new() };
        let meant;
        (meant, *all) = std::mem::take(all).into_iter().partition::<VecDeque<_>, _>(|item| is_meant(item));
        meant.into_iter().map(|item| *item).collect()
    }

    /// Makes the channel, if this is its first message.
    #[expect(clippy::disallowed_methods, reason = "the caller bounds what waits, by count and by bytes")]
    fn ends(&mut self) -> &mut Ends<T> {
        self.0.get_or_insert_with(|| {
            let (sender, receiver) = async_channel::unbounded();
            Box::new(Ends { front: VecDeque::new(), sender, receiver, sent: 0 })
        })
    }
}

impl<T> Ends<T> {
    fn receive(&mut self) -> Option<Box<T>> {
        self.sent = self.sent.checked_sub(1)?;
        self.receiver.try_recv().ok()
    }
}

impl<T> Default for Channel<T> {
    fn default() -> Self {
        Self(None)
    }
}

#[cfg(test)]
mod tests;
