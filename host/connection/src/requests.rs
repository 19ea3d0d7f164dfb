//! Requests that the program has in hand.

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use weir_host::{
    Error,
    peers::{PeerRequest, Session},
};

/// Requests that were sent to the program and are not answered, by number.
#[derive(Debug)]
pub struct Requests {
    max: u32,
    last: u32,
    in_hand: HashMap<u32, PeerRequest>,
    /// Yields the number of each request once nobody waits for it any more.
    given_up: FuturesUnordered<Pin<Box<dyn Future<Output = u32> + Send>>>,
}

impl Requests {
    /// No requests. The program takes up to `max` before it answers one.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self { max, last: 0, in_hand: HashMap::new(), given_up: FuturesUnordered::new() }
    }

    /// Whether the program takes one more.
    #[must_use]
    pub fn has_room(&self) -> bool {
        u32::try_from(self.in_hand.len()).is_ok_and(|in_hand| in_hand < self.max)
    }

    /// Keeps a request until it is answered; returns it with its number and payload. The kept request has no payload
    /// any more, because no limit would bound it here.
    pub fn add(&mut self, mut request: PeerRequest) -> (u32, Bytes, &mut PeerRequest) {
        let number = next_free(&mut self.last, &self.in_hand);
        let payload = std::mem::take(&mut request.payload);
        self.given_up.push(Box::pin(request.given_up().map(move |()| number)));
        (number, payload, self.in_hand.entry(number).insert_entry(request).into_mut())
    }

    /// Answers a request. If it is not in hand, because nobody waits for it any more, its session counts a late answer.
    pub fn answer(&mut self, number: u32, outcome: Result<Bytes, Error>, session: &Session) {
        let Some(request) = self.in_hand.remove(&number) else { return session.count_late() };
        // Either method counts an answer that comes too late.
        let _is_in_time = match outcome {
            Ok(payload) => request.answer(Ok(payload)),
            Err(error) => request.refuse(error),
        };
    }

    /// Forgets a request that nobody waits for any more, and returns its number. `None` if there is no such request.
    pub fn poll_given_up(&mut self, context: &mut Context<'_>) -> Option<u32> {
        while let Poll::Ready(Some(request)) = self.given_up.poll_next_unpin(context) {
            // Requests that were answered are yielded, too.
            if self.in_hand.remove(&request).is_some() {
                return Some(request);
            }
        }
        None
    }
}

/// The next number that is not in use, and not 0.
pub fn next_free<T>(last: &mut u32, used: &HashMap<u32, T>) -> u32 {
    loop {
        *last = last.wrapping_add(1).max(1);
        if !used.contains_key(last) {
            return *last;
        }
    }
}
