//! Messages of one kind that wait in order: in an async-channel, behind a short front.
//!
//! Bounds, and the wait for a message of any kind, are the caller's.

use std::collections::VecDeque;

use async_channel::{Receiver, Sender};

/// A channel that is made with its first message, and closes when it is dropped. Until then it takes no memory.
#[derive(Debug)]
pub(crate) struct Channel<T>(Option<Box<Ends<T>>>);

#[derive(Debug)]
struct Ends<T> {
    /// Messages that came back, and those that were looked through. They are first.
    front: VecDeque<Box<T>>,
    sender: Sender<Box<T>>,
    receiver: Receiver<Box<T>>,
    /// How many wait, in front and in the channel.
    len: usize,
}

impl<T> Channel<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |ends| ends.len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push_back(&mut self, item: T) {
        let ends = self.ends();
        // Without a bound, and open as long as both ends are here, it takes any message.
        if ends.sender.try_send(Box::new(item)).is_ok() {
            ends.len += 1;
        }
    }

    pub(crate) fn push_front(&mut self, item: T) {
        let ends = self.ends();
        ends.front.push_front(Box::new(item));
        ends.len += 1;
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let ends = self.0.as_mut().filter(|ends| ends.len > 0)?;
        let item = match ends.front.pop_front() {
            Some(item) => item,
            None => ends.receiver.try_recv().ok()?,
        };
        ends.len -= 1;
        ends.shrink();
        Some(*item)
    }

    /// Takes the first message that is meant. Those before it are in front from now on.
    pub(crate) fn take_first(&mut self, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        let Ends { front, receiver, len, .. } = self.0.as_deref_mut()?;
        if let Some(place) = front.iter().position(|item| is_meant(item)) {
            return self.remove(place);
        }
        while let Ok(item) = receiver.try_recv() {
            if is_meant(&item) {
                *len -= 1;
                return Some(*item);
            }
            front.push_back(item);
        }
        None
    }

    /// Removes the message at a place that [`look_through`](Self::look_through) showed.
    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let ends = self.0.as_mut()?;
        let item = ends.front.remove(place)?;
        ends.len -= 1;
        ends.shrink();
        Some(*item)
    }

    /// All messages, in order. They are in front from now on.
    pub(crate) fn look_through(&mut self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        let ends = self.0.as_deref_mut();
        ends.map(|ends| {
            ends.front.extend(std::iter::from_fn(|| ends.receiver.try_recv().ok()));
            ends.front.iter()
        })
        .unwrap_or_default()
        .map(|item| &**item)
    }

    /// Takes out the messages that are meant, and keeps the rest in order.
    pub(crate) fn extract(&mut self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        let Some(ends) = self.0.as_deref_mut() else { return Vec::new() };
        ends.front.extend(std::iter::from_fn(|| ends.receiver.try_recv().ok()));
        let (meant, kept): (VecDeque<_>, _) =
            std::mem::take(&mut ends.front).into_iter().partition(|item| is_meant(item));
        (ends.len, ends.front) = (kept.len(), kept);
        meant.into_iter().map(|item| *item).collect()
    }

    /// Makes the channel, if this is its first message.
    #[expect(clippy::disallowed_methods, reason = "the caller bounds what waits, by count and by bytes")]
    fn ends(&mut self) -> &mut Ends<T> {
        self.0.get_or_insert_with(|| {
            let (sender, receiver) = async_channel::unbounded();
            Box::new(Ends { front: VecDeque::new(), sender, receiver, len: 0 })
        })
    }
}

impl<T> Ends<T> {
    /// Gives back the memory of a long front.
    fn shrink(&mut self) {
        if self.front.is_empty() && self.front.capacity() > 64 {
            self.front = VecDeque::new();
        }
    }
}

impl<T> Default for Channel<T> {
    fn default() -> Self {
        Self(None)
    }
}
