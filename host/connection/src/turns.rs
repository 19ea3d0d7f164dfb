//! The turns of a connection: answers, messages for the program, what it sends, and what is written to it. One task takes
//! them, so nothing of a connection runs beside the rest of it. Knows no protocol and no socket.

use std::{
    future::poll_fn,
    hash::Hash,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use weir_host::peers::{PeerMessage, Session, Wanted};

use crate::{Requests, UnderWay};

/// Nothing is added while so many bytes wait to be written. The last message that was added may go beyond.
pub const MAX_WAITING: usize = 256 * 1024;

/// Time to write the last bytes to a program.
pub const LINGER: Duration = Duration::from_millis(500);

/// Rounds that a connection takes before other tasks of the thread have their turn.
const ROUNDS: usize = 4;

/// Times that a connection is read in one round.
const READS: usize = 16;

/// Whether a step did something, or why the session ends. `None` in the error means that the program has gone. A
/// step that did nothing has left the task's waker with all that it waits for.
pub type Step<C> = Result<bool, Option<C>>;

/// A connection in some protocol. To send means to add to what waits to be written.
pub trait Protocol {
    /// The program's own key of what it began.
    type Id: Clone + Eq + Hash + Send + 'static;
    /// The outcome of what the program began.
    type Outcome: 'static;
    /// Why the session ends, as the program hears it.
    type Close;

    /// Its session, what the program began, and what the program was asked.
    fn parts(&mut self) -> (&Session, &mut UnderWay<Self::Id, Self::Outcome>, &mut Requests);

    /// Whether less than [`MAX_WAITING`] bytes wait to be written.
    fn has_room(&self) -> bool;

    /// Which messages the program takes. `None` if it reads no more, though what it sent may still be there to read.
    fn wanted(&self) -> Option<Wanted>;

    /// Finds out whether the session must end, before each round.
    fn begin_round(&mut self, _context: &mut Context<'_>) -> Result<(), Option<Self::Close>> {
        Ok(())
    }

    /// Sends an answer.
    fn answer(&mut self, id: Option<Self::Id>, outcome: Self::Outcome);

    /// Sends a job, if one has come. Returns whether it sent something.
    fn send_job(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }

    /// Sends a message that the program wants.
    fn send(&mut self, message: PeerMessage);

    /// Says that nobody waits for the answer to a request any more.
    fn send_given_up(&mut self, number: u32);

    /// Reads once, or acts on what was read. False if nothing came, or the rate allows no more.
    fn read(&mut self, context: &mut Context<'_>) -> Step<Self::Close>;

    /// Writes as much as the program takes. True if that lets other steps go on.
    fn write(&mut self, context: &mut Context<'_>) -> Step<Self::Close>;

    /// Acts on a change of the grants by the operator.
    fn regranted(&mut self);

    /// Acts on one of the ticks that were given to [`run`].
    fn tick(&mut self) -> Result<(), Option<Self::Close>> {
        Ok(())
    }
}

/// Runs until the session ends, also from outside by `over`, and says why. `None` means that the program has gone.
///
/// Nothing more is read while too much waits to be written. So a program that does not read costs no more than one buffer,
/// the inbox of its session, and what it has under way.
pub async fn run<P: Protocol>(
    connection: &mut P,
    over: impl Future<Output = P::Close>,
    ticks: impl Stream<Item = ()>,
) -> Option<P::Close> {
    let (mut over, mut ticks) = (pin!(over), pin!(ticks.fuse()));
    let mut regranted = pin!(connection.parts().0.regranted());
    poll_fn(|context| {
        if let Poll::Ready(close) = over.as_mut().poll(context) {
            return Poll::Ready(Some(close));
        }
        while regranted.as_mut().poll(context).is_ready() {
            regranted.set(connection.parts().0.regranted());
            connection.regranted();
        }
        while let Poll::Ready(Some(())) = ticks.as_mut().poll_next(context) {
            if let Err(close) = connection.tick() {
                return Poll::Ready(close);
            }
        }
        rounds(connection, context).err().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Sends answers to what the program has under way, which makes room for what it begins next, and jobs that came.
/// Returns whether it sent something.
pub fn answers<P: Protocol>(connection: &mut P, context: &mut Context<'_>) -> bool {
    let mut busy = false;
    while connection.has_room()
        && let Some((id, outcome)) = connection.parts().1.poll_one(context)
    {
        connection.answer(id, outcome);
        busy = true;
    }
    while connection.has_room() && connection.wanted().is_some() && connection.send_job(context) {
        busy = true;
    }
    busy
}

/// Goes on until nothing is left to do, which leaves the task's waker everywhere, or others must have their turn.
fn rounds<P: Protocol>(connection: &mut P, context: &mut Context<'_>) -> Result<(), Option<P::Close>> {
    for _ in 0..ROUNDS {
        connection.begin_round(context)?;
        let mut busy = answers(connection, context);
        busy |= messages(connection, context);
        busy |= read(connection, context)?;
        busy |= connection.write(context)?;
        if !busy {
            return Ok(());
        }
    }
    // Other tasks of the thread go first.
    context.waker().wake_by_ref();
    Ok(())
}

/// Sends requests and events that wait for the program, and which requests nobody waits for any more. Returns whether
/// it sent something.
fn messages<P: Protocol>(connection: &mut P, context: &mut Context<'_>) -> bool {
    let mut busy = false;
    while connection.has_room()
        && let Some(wanted) = connection.wanted()
    {
        let (session, _, requests) = connection.parts();
        if let Some(number) = requests.poll_given_up(context) {
            connection.send_given_up(number);
        } else if let Poll::Ready(Some(message)) = session.poll_next(wanted, context) {
            connection.send(message);
        } else {
            break;
        }
        busy = true;
    }
    busy
}

/// Reads and acts on messages, as far as the rate and the output allow.
fn read<P: Protocol>(connection: &mut P, context: &mut Context<'_>) -> Step<P::Close> {
    for reads in 0..READS {
        if !connection.has_room() || !connection.read(context)? {
            return Ok(reads > 0);
        }
    }
    // More may be there, and nothing wakes the task for that.
    Ok(true)
}

#[cfg(test)]
mod tests;
