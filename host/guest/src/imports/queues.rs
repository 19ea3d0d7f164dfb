//! `weir:iec/queues`: shared queues.

use bytes::Bytes;
use wasmtime::component::LinkerInstance;
use weir_bus::{Error, MessageId, Putting};

use super::{Async, Fallible, Payload, Store, abi, meter, outcome, take};
use crate::state::State;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("open", |mut store: Store<'_>, (queue,): (String,)| {
        meter::charge(&mut store, queue.len())?;
        outcome(store.data_mut().open_queue(&queue))
    })?;
    linker.func_wrap_async("put", |store, (queue, payload, options)| put(store, queue, payload, options))?;
    linker.func_wrap("take", |mut store: Store<'_>, (queue, how): (u32, abi::Taking)| {
        meter::charge(&mut store, 0)?;
        let state = store.data_mut();
        outcome(state.jobs.take_from(queue, how, state.in_flight))
    })?;
    linker.func_wrap("done", |mut store: Store<'_>, (job,): (u64,)| {
        meter::charge(&mut store, 0)?;
        outcome(store.data_mut().jobs.done(MessageId(job)))
    })?;
    linker.func_wrap("give-back", |mut store: Store<'_>, (job,): (u64,)| {
        meter::charge(&mut store, 0)?;
        outcome(store.data_mut().jobs.give_back(MessageId(job)))
    })
}

fn put(
    mut store: Store<'_>,
    queue: u32,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, Fallible<u64>> {
    Box::new(async move {
        let payload = take(&mut store, &payload, 0)?;
        match store.data().put(queue, payload, &options) {
            Ok(putting) => outcome(putting.put().await.map(|id| id.0)),
            Err(error) => outcome(Err(error)),
        }
    })
}

impl State {
    fn open_queue(&mut self, name: &str) -> Result<u32, Error> {
        let queue = self.bus.open_queue(&self.peer, name)?;
        self.jobs.open(queue, self.sandbox.fixed.open_operations)
    }

    fn put(&self, queue: u32, payload: Bytes, options: &abi::Options) -> Result<Putting, Error> {
        let times = self.times(options)?;
        self.bus.put(&self.peer, self.jobs.queue(queue)?, payload, times)
    }
}
