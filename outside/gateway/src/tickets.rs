//! Tickets: a page logs in with one, because browsers send no token with a WebSocket.
//!
//! A ticket is a session that waits for its WebSocket. So it counts in the limit on sessions, and ends when the operator
//! takes back the name or the proof that the ticket was asked for with.

use std::{fmt, time::Duration};

use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use weir_host::{config::TokenHash, peers::Session};

use crate::Origin;

/// How long a ticket is good.
pub(crate) const TERM: Duration = Duration::from_secs(30);

/// Random bytes of a ticket: nobody guesses that many.
const BYTES: usize = 32;

#[derive(Default)]
pub(crate) struct Tickets {
    /// Oldest first.
    open: Mutex<Vec<Ticket>>,
    /// Notified when a ticket is made or used.
    changed: Notify,
}

struct Ticket {
    hash: TokenHash,
    session: Session,
    origin: Origin,
    ends: Instant,
}

/// Shows the number of tickets, without their hashes.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("open", &self.open.lock().len()).finish_non_exhaustive()
    }
}

impl Tickets {
    /// Makes a ticket for a page of this origin.
    ///
    /// # Errors
    ///
    /// If the system has no random bytes.
    pub(crate) fn issue(&self, session: Session, origin: Origin) -> std::io::Result<String> {
        let mut bytes = [0; BYTES];
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        let ticket: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (hash, ends) = (TokenHash::of(&ticket), Instant::now() + TERM);
        self.open.lock().push(Ticket { hash, session, origin, ends });
        self.changed.notify_one();
        Ok(ticket)
    }

    /// The session of a ticket. `None` if the ticket is unknown, of another name, too old or for another origin. The
    /// name's ticket cannot be used again, even if it is too old or for another origin.
    pub(crate) fn redeem(&self, name: &str, ticket: &str, origin: &str) -> Option<Session> {
        let (mut open, now) = (self.open.lock(), Instant::now());
        // All tickets of the name are compared, each in the same time, so that the time tells nothing.
        let is = |own: &Ticket| own.session.name().as_str() == name && own.hash.matches(ticket);
        let found: Vec<usize> =
            open.iter().enumerate().filter(|(_, own)| is(own)).map(|(at, _)| at).collect();
        let ticket = open.remove(*found.first()?);
        self.changed.notify_one();
        (ticket.ends > now && ticket.origin.matches(origin)).then_some(ticket.session)
    }

    /// Ends the sessions of tickets that nobody uses in time. Never returns.
    pub(crate) async fn expire(&self) {
        loop {
            let oldest = self.open.lock().first().map(|ticket| ticket.ends);
            match oldest {
                None => self.changed.notified().await,
                Some(ends) => tokio::select! {
                    () = sleep_until(ends) => {
                        let now = Instant::now();
                        self.open.lock().retain(|ticket| ticket.ends > now);
                    }
                    // The oldest ticket may have been used, or a first one made: the loop looks again.
                    () = self.changed.notified() => {}
                },
            }
        }
    }
}
