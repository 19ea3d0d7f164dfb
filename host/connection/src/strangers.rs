//! Connections that have not proved a name: how many there may be, and which makes room.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::oneshot;

/// Connections without a proof.
const MAX: usize = 64;

/// All connections of a socket or gateway that have not proved a name: at most 64. The oldest makes room for the next.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    last: u64,
    oldest_first: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A place among them, until dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    all: Arc<Strangers>,
    /// Ends when a newer connection takes the place.
    taken: oneshot::Receiver<()>,
}

impl Strangers {
    /// Takes a place, from the oldest connection if all are taken.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Place {
        let (sender, taken) = oneshot::channel();
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.oldest_first.len() >= MAX {
            list.oldest_first.pop_front();
        }
        list.last += 1;
        let number = list.last;
        list.oldest_first.push_back((number, sender));
        Place { number, all: self.clone(), taken }
    }

    /// Takes the place of the oldest connection, if there is one, as for a connection that finds no room elsewhere.
    pub fn evict(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).oldest_first.pop_front();
    }
}

impl Place {
    /// Waits until a newer connection takes the place.
    pub async fn taken(&mut self) {
        // Nothing is ever sent: the other end is dropped.
        let _taken = (&mut self.taken).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut list = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.oldest_first.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;

    use futures_util::task::noop_waker_ref;

    use super::*;

    fn is_taken(place: &mut Place) -> bool {
        let context = &mut std::task::Context::from_waker(noop_waker_ref());
        std::pin::pin!(place.taken()).poll(context).is_ready()
    }

    #[test]
    fn the_oldest_makes_room_and_a_place_given_up_is_free() {
        let strangers = Arc::<Strangers>::default();
        let mut places: Vec<_> = (0..MAX).map(|_| strangers.enter()).collect();
        drop(places.pop());
        let _new = strangers.enter();
        assert!(!is_taken(&mut places[0]));
        let _newer = strangers.enter();
        assert!(is_taken(&mut places[0]));
        assert!(!is_taken(&mut places[1]));
        strangers.evict();
        assert!(is_taken(&mut places[1]));
    }
}
