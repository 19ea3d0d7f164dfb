//! `weir:iec/channel`: the inbox, and answers to what it brings.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use weir_bus::{Error, MessageId};

use super::{Async, Fallible, Payload, Store, abi, meter, outcome, take};
use crate::{
    jobs::Takings,
    state::{State, not_in_hand},
};

/// Messages that one receive may take.
const MAX_BATCH: u32 = 1024;

type Answer = Result<Payload, abi::HandlerError>;
type Next = Option<abi::Message>;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("serve", serve)?;
    linker.func_wrap_async("receive", |mut store, ()| -> Async<'_, Next> {
        Box::new(async move { Ok((receive(&mut store).await?,)) })
    })?;
    linker.func_wrap_async("receive-within", |store, (timeout_ms,)| receive_within(store, timeout_ms))?;
    linker.func_wrap_async("receive-batch", |store, (max, order, timeout_ms)| {
        receive_batch(store, max, order, timeout_ms)
    })?;
    linker.func_wrap("respond", |mut store: Store<'_>, (id, answer): (u64, Answer)| {
        outcome(respond(&mut store, id, answer)?)
    })?;
    linker.func_wrap_async("respond-and-receive", |store, (id, answer)| {
        respond_and_receive(store, id, answer)
    })?;
    linker.func_wrap_async("subscribe-inbox", |mut store, ()| -> Async<'_, Resource<DynPollable>> {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            // Whoever waits on it may wait for the first message.
            if !store.data().is_ready() {
                store.data_mut().declare_ready().await;
            }
            Ok((subscribe_inbox(store.data_mut())?,))
        })
    })
}

fn serve(
    mut store: Store<'_>,
    (contract, operations): (String, Vec<String>),
) -> wasmtime::Result<(Fallible<u32>,)> {
    meter::charge_texts(&mut store, operations.iter().chain([&contract]))?;
    outcome(store.data().peer.serve(&contract, &operations))
}

/// Waits until `take` finds something, keeps it and says how many messages it is; whether that was before the
/// time has passed.
///
/// Nothing is taken that is not delivered: only the wait ends with the time, never the delivery.
async fn wait_for(
    store: &mut Store<'_>,
    timeout_ms: Option<u32>,
    mut take: impl FnMut(&mut State, Option<&Waker>) -> Option<usize>,
) -> wasmtime::Result<bool> {
    if !store.data().is_ready() {
        store.data_mut().declare_ready().await;
    }
    let mut deadline = None;
    let mut is_over = timeout_ms == Some(0);
    loop {
        let look = |context: &mut Context<'_>| {
            Poll::Ready(take(store.data_mut(), (!is_over).then(|| context.waker())))
        };
        if let Some(messages) = poll_fn(look).await {
            // Stop brings no new budget.
            match messages {
                0 => meter::charge(store, 0)?,
                messages => meter::deliver(store, messages)?,
            }
            return Ok(true);
        }
        if is_over {
            meter::charge(store, 0)?;
            return Ok(false);
        }
        meter::show(store);
        let readable = store.data().readable();
        match timeout_ms {
            None => readable.await,
            Some(ms) => {
                let deadline =
                    *deadline.get_or_insert_with(|| Instant::now() + Duration::from_millis(ms.into()));
                // A job may have been handed over at the last moment: it is looked for once more.
                is_over = timeout_at(deadline, readable).await.is_err();
            }
        }
    }
}

async fn receive(store: &mut Store<'_>) -> wasmtime::Result<Next> {
    let mut next = None;
    wait_for(store, None, |state, task| state.take_next(task, &mut next)).await?;
    Ok(next)
}

fn receive_within(mut store: Store<'_>, timeout_ms: u32) -> Async<'_, Fallible<Next>> {
    Box::new(async move {
        let mut next = None;
        let take = |state: &mut State, task: Option<&Waker>| state.take_next(task, &mut next);
        let is_in_time = wait_for(&mut store, Some(timeout_ms), take).await?;
        outcome(if is_in_time { Ok(next) } else { Err(Error::Timeout) })
    })
}

fn receive_batch(
    mut store: Store<'_>,
    max: u32,
    order: abi::BatchOrder,
    timeout_ms: Option<u32>,
) -> Async<'_, Fallible<Vec<abi::Message>>> {
    Box::new(async move {
        if !(1..=MAX_BATCH).contains(&max) {
            meter::charge(&mut store, 0)?;
            return outcome(Err(Error::Invalid(format!(
                "a batch of {max}; from 1 to {MAX_BATCH} are possible"
            ))));
        }
        let max = usize::try_from(max)?;
        let mut batch = Vec::new();
        let take = |state: &mut State, task: Option<&Waker>| {
            batch = state.take_batch(task, max, order)?;
            Some(batch.len())
        };
        let is_in_time = wait_for(&mut store, timeout_ms, take).await?;
        outcome(if is_in_time { Ok(batch) } else { Err(Error::Timeout) })
    })
}

fn respond(store: &mut Store<'_>, id: u64, answer: Answer) -> wasmtime::Result<Result<(), Error>> {
    let answer = match answer {
        Ok(payload) => Ok(take(store, &payload, 0)?),
        Err(error) => {
            meter::charge(store, error.code.len() + error.message.len())?;
            Err(error.into())
        }
    };
    Ok(store.data_mut().respond(id, answer))
}

fn respond_and_receive(mut store: Store<'_>, id: u64, answer: Answer) -> Async<'_, Fallible<Next>> {
    Box::new(async move {
        match respond(&mut store, id, answer)? {
            Ok(()) => outcome(Ok(receive(&mut store).await?)),
            Err(error) => outcome(Err(error)),
        }
    })
}

impl State {
    fn take_next(&mut self, task: Option<&Waker>, next: &mut Next) -> Option<usize> {
        *next = self.take(task)?;
        Some(usize::from(next.is_some()))
    }

    fn respond(&mut self, id: u64, answer: Result<Bytes, Error>) -> Result<(), Error> {
        if let Ok(payload) = &answer {
            self.peer.check_size(payload)?;
        }
        let (duty, was_full) = self.in_hand.take(MessageId(id)).ok_or_else(|| not_in_hand(id))?;
        self.show_in_flight();
        if !duty.give(answer) {
            self.peer.count_late();
        }
        if was_full {
            self.peer.hold_requests(false);
        }
        Ok(())
    }
}

/// What a guest waits on to learn that a receive would not wait.
struct InboxPollable(Arc<Takings>);

#[wasmtime_wasi::async_trait]
impl Pollable for InboxPollable {
    async fn ready(&mut self) {
        self.0.readable().await;
    }
}

fn subscribe_inbox(state: &mut State) -> wasmtime::Result<Resource<DynPollable>> {
    let inbox = state.sandbox.table.push(InboxPollable(state.jobs.takings().clone()))?;
    subscribe(&mut state.sandbox.table, inbox)
}
