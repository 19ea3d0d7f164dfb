//! `weir:iec/queues`: shared queues.

use wasmtime::component::{LinkerInstance, WasmList};
use weir_bus::{Error, MessageId};

use super::{Async, Fallible, Name, Payload, Store, abi, meter, outcome, take};
use crate::{abi::Handed, instance_state::InstanceState};

/// How many jobs one call may finish: as many as one receive may bring.
const MAX_DONE: usize = 1024;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("open", |mut store: Store<'_>, (queue,): (Name,)| {
        meter::charge(&mut store, queue.copied())?;
        outcome(queue.within().and_then(|queue| store.data_mut().open_queue(&queue)))
    })?;
    linker.func_wrap_async("put", |store, (queue, payload, options)| put(store, queue, payload, options))?;
    linker.func_wrap("take", |mut store: Store<'_>, (queue, how): (u32, abi::Taking)| {
        meter::charge(&mut store, 0)?;
        outcome(store.data_mut().delivery.set_taking(queue, how))
    })?;
    linker.func_wrap("done", |mut store: Store<'_>, (job,): (u64,)| {
        meter::charge(&mut store, 0)?;
        outcome(store.data_mut().delivery.jobs.done(MessageId(job)))
    })?;
    linker.func_wrap("done-all", |mut store: Store<'_>, (jobs,): (Handed<WasmList<u64>>,)| {
        done_all(&mut store, &jobs)
    })?;
    linker.func_wrap("give-back", |mut store: Store<'_>, (job,): (u64,)| {
        meter::charge(&mut store, 0)?;
        outcome(store.data_mut().delivery.jobs.give_back(MessageId(job)))
    })
}

fn done_all(store: &mut Store<'_>, jobs: &Handed<WasmList<u64>>) -> wasmtime::Result<(Fallible<()>,)> {
    let jobs = match jobs {
        Handed::Whole(jobs) if jobs.len() <= MAX_DONE => jobs,
        jobs => {
            let number = match jobs {
                Handed::Whole(jobs) => jobs.len() as u64,
                Handed::TooLarge(number) => *number,
            };
            meter::charge(store, 0)?;
            return outcome(Err(Error::Invalid(format!("{number} jobs; up to {MAX_DONE} are possible"))));
        }
    };
    meter::charge_each(store, jobs.len())?;
    let jobs = jobs.as_le_slice(&*store).iter().map(|id| MessageId(u64::from_le(*id)));
    let jobs: Vec<_> = jobs.collect();
    outcome(store.data_mut().delivery.jobs.done_all(&jobs))
}

fn put(
    mut store: Store<'_>,
    queue: u32,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, Fallible<u64>> {
    Box::new(async move {
        let payload = take(&mut store, &payload, 0)?;
        match payload.and_then(|payload| store.data().put(queue, payload, &options)) {
            Ok(putting) => outcome(putting.put().await.map(|id| id.0)),
            Err(error) => outcome(Err(error)),
        }
    })
}
