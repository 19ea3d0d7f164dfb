//! `weir:iec/channel`: the inbox, and answers to its requests.

use std::{
    future::{poll_fn, ready},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use weir_bus::Error;

use super::{
    Async, Fallible, Name, Payload, Store, abi, in_one_piece, meter, outcome, pollables::push_uncounted, take,
};
use crate::{
    abi::{Handed, OnePiece},
    delivery::{Held, TakenQueues},
    instance_state::InstanceState,
};

/// How many messages one receive may take.
const MAX_BATCH: u32 = 1024;

type GuestAnswer = Result<Payload, abi::GivenError>;
pub(crate) type Received = Option<abi::Message>;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("serve", serve)?;
    linker.func_wrap_async("receive", |store, ()| receive(store, |next| Ok((OnePiece(next),))))?;
    linker.func_wrap_async("receive-within", |store, (timeout_ms,)| receive_within(store, timeout_ms))?;
    linker.func_wrap_async("receive-batch", |store, (max, order, timeout_ms)| {
        receive_batch(store, max, order, timeout_ms)
    })?;
    linker.func_wrap("respond", |mut store: Store<'_>, (id, answer): (u64, GuestAnswer)| {
        outcome(respond(&mut store, id, answer)?)
    })?;
    linker.func_wrap_async("respond-and-receive", |store, (id, answer)| {
        respond_and_receive(store, id, answer)
    })?;
    linker.func_wrap_async("subscribe-inbox", |mut store, ()| -> Async<'_, Resource<DynPollable>> {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            // Declared here, because the guest may wait on the pollable for its first message.
            declare_ready(&mut store).await;
            Ok((subscribe_inbox(store.data_mut())?,))
        })
    })
}

fn serve(
    mut store: Store<'_>,
    (contract, operations): (Name, Handed<Vec<Name>>),
) -> wasmtime::Result<(Fallible<u32>,)> {
    let operations = match operations {
        Handed::Whole(operations) => operations,
        Handed::TooLarge(number) => {
            meter::charge(&mut store, 0)?;
            return outcome(Err(Error::Invalid(format!(
                "{number} operations have longer names than one call carries"
            ))));
        }
    };
    let texts = operations.iter().chain([&contract]).filter_map(|name| name.0.as_ref().ok());
    meter::charge_texts(&mut store, texts)?;
    let names: Result<Vec<_>, _> = operations.into_iter().map(Name::within).collect();
    outcome(match (contract.within(), names) {
        (Ok(contract), Ok(operations)) => store.data().peer.serve(&contract, &operations),
        (Err(error), _) | (_, Err(error)) => Err(error),
    })
}

/// Waits until `take` returns a number of messages, which is 0 for a stop, and returns true. Returns false if the time
/// passed first.
///
/// The time ends only the wait and never a delivery, so no message is taken that the guest does not get.
async fn wait_for(
    store: &mut Store<'_>,
    timeout_ms: Option<u32>,
    mut take: impl FnMut(&mut InstanceState, Option<&Waker>) -> Option<usize>,
) -> wasmtime::Result<bool> {
    declare_ready(store).await;
    let mut deadline = None;
    let mut is_over = timeout_ms == Some(0);
    loop {
        let look = |context: &mut Context<'_>| {
            Poll::Ready(take(store.data_mut(), (!is_over).then(|| context.waker())))
        };
        if let Some(messages) = poll_fn(look).await {
            // A stop brings no new budget of fuel.
            match messages {
                0 => meter::charge(store, 0)?,
                messages => {
                    store.data_mut().sandbox.memory.refused = None;
                    meter::deliver(store, messages)?;
                    if store.data().delivery.has_new_spans() {
                        let used = meter::used(store);
                        store.data_mut().delivery.note_fuel_before(used);
                    }
                }
            }
            return Ok(true);
        }
        let has_refused = store.data_mut().delivery.reset_refused();
        if has_refused {
            // A new budget, because requests that do not fit would otherwise use up the guest's fuel.
            meter::deliver(store, 1)?;
        }
        if is_over {
            meter::charge(store, 0)?;
            return Ok(false);
        }
        meter::show(store);
        match timeout_ms {
            None => store.data().delivery.readable(has_refused).await,
            Some(ms) => {
                let deadline =
                    *deadline.get_or_insert_with(|| Instant::now() + Duration::from_millis(ms.into()));
                // Boxed, because the timer is large, and most guests wait without one. After the time, a last look
                // finds a job that came at the last moment.
                let readable = store.data().delivery.readable(has_refused);
                is_over = Box::pin(timeout_at(deadline, readable)).await.is_err();
            }
        }
    }
}

/// Waits for the next message, or none for a stop. `returned` turns that into the result of the import.
fn receive<'a, T: 'static>(
    mut store: Store<'a>,
    returned: fn(Received) -> wasmtime::Result<(T,)>,
) -> Async<'a, T> {
    Box::new(async move {
        let mut next = None;
        let take = |state: &mut InstanceState, task: Option<&Waker>| {
            state.delivery.receive(task, &state.sandbox.meter, &mut next)
        };
        wait_for(&mut store, None, take).await?;
        returned(next)
    })
}

/// Waits for the next message in place of a guest that the host calls. None is a stop.
pub(crate) async fn next_message(store: &mut Store<'_>) -> wasmtime::Result<Received> {
    let mut next = None;
    let take = |state: &mut InstanceState, task: Option<&Waker>| {
        state.delivery.receive(task, &state.sandbox.meter, &mut next)
    };
    wait_for(store, None, take).await?;
    Ok(next)
}

fn receive_within(mut store: Store<'_>, timeout_ms: u32) -> Async<'_, OnePiece<Fallible<Received>>> {
    Box::new(async move {
        let mut next = None;
        let take = |state: &mut InstanceState, task: Option<&Waker>| {
            state.delivery.receive(task, &state.sandbox.meter, &mut next)
        };
        let is_in_time = wait_for(&mut store, Some(timeout_ms), take).await?;
        in_one_piece(if is_in_time { Ok(next) } else { Err(Error::Timeout) })
    })
}

fn receive_batch(
    mut store: Store<'_>,
    max: u32,
    order: abi::BatchOrder,
    timeout_ms: Option<u32>,
) -> Async<'_, Fallible<Vec<OnePiece<abi::Message>>>> {
    Box::new(async move {
        if !(1..=MAX_BATCH).contains(&max) {
            meter::charge(&mut store, 0)?;
            return outcome(Err(Error::Invalid(format!(
                "a batch of {max}; from 1 to {MAX_BATCH} are possible"
            ))));
        }
        let max = usize::try_from(max)?;
        let mut batch = Vec::new();
        let take = |state: &mut InstanceState, task: Option<&Waker>| {
            batch = state.delivery.receive_batch(task, &state.sandbox.meter, max, order)?;
            Some(batch.len())
        };
        let is_in_time = wait_for(&mut store, timeout_ms, take).await?;
        outcome(if is_in_time { Ok(batch) } else { Err(Error::Timeout) })
    })
}

fn respond(store: &mut Store<'_>, id: u64, answer: GuestAnswer) -> wasmtime::Result<Result<(), Error>> {
    let answer = match answer {
        Ok(payload) => match take(store, &payload, 0)? {
            Ok(payload) => Ok(payload),
            Err(error) => return Ok(Err(error)),
        },
        Err(error) => {
            meter::charge(store, error.code.0.len() + error.message.0.len())?;
            Err(error.into())
        }
    };
    Ok(give(store, id, answer, 0))
}

/// Gives an answer, and notes in its trace the fuel that was used, here and elsewhere.
#[inline]
pub(crate) fn give(
    store: &mut Store<'_>,
    id: u64,
    answer: Result<Bytes, Error>,
    elsewhere: u64,
) -> Result<(), Error> {
    if let Some(span) = store.data().delivery.span(id) {
        span.note_fuel(meter::used(store).saturating_add(elsewhere));
    }
    store.data_mut().delivery.respond(id, answer)
}

fn respond_and_receive(
    mut store: Store<'_>,
    id: u64,
    answer: GuestAnswer,
) -> Async<'_, OnePiece<Fallible<Received>>> {
    // The answer is given before the future is made, because the future is copied to the heap and should hold only the
    // wait.
    let failed = match respond(&mut store, id, answer) {
        Ok(Ok(())) => return receive(store, |next| in_one_piece(Ok(next))),
        Ok(Err(error)) => in_one_piece(Err(error)),
        Err(trap) => Err(trap),
    };
    Box::new(ready(failed))
}

/// Declares a guest ready because it looks for messages, unless it has declared anything itself.
async fn declare_ready(store: &mut Store<'_>) {
    if !store.data().delivery.readiness.is_declared() {
        // Boxed, because this wait comes once in an instance, and every wait for a message would otherwise reserve its
        // space.
        Box::pin(store.data_mut().delivery.readiness.ready()).await;
    }
}

/// The pollable that a guest waits on until a receive would not wait.
struct InboxPollable {
    queues: Arc<TakenQueues>,
    held: Arc<Held>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for InboxPollable {
    async fn ready(&mut self) {
        // A guest that waits for its next message has finished its event.
        self.held.end_event();
        self.queues.readable().await;
    }
}

fn subscribe_inbox(state: &mut InstanceState) -> wasmtime::Result<Resource<DynPollable>> {
    let table = &mut state.sandbox.table;
    let inbox = match state.inbox {
        Some(inbox) => inbox,
        None => {
            let (queues, held) = (state.delivery.jobs.taken_queues().clone(), state.delivery.held().clone());
            let inbox = InboxPollable { queues, held };
            *state.inbox.insert(push_uncounted(table, inbox)?)
        }
    };
    subscribe(table, Resource::<InboxPollable>::new_borrow(inbox))
}
