//! `weir:iec/requests`: requests to others.

use bytes::Bytes;
use wasmtime::component::LinkerInstance;
use weir_bus::{Carried, Error, PendingCall};
use weir_schedule::switch;

use super::{Async, Fallible, Name, Payload, Store, abi, in_one_piece, meter, outcome, take};
use crate::{abi::OnePiece, instance_state::InstanceState, memory::size};

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("open", open)?;
    linker
        .func_wrap_async("call", |store, (target, payload, options)| call(store, target, payload, options))?;
    linker
        .func_wrap_async("send", |store, (target, payload, options)| send(store, target, payload, options))?;
    linker.func_wrap("cancel", |mut store: Store<'_>, (id,): (u64,)| {
        meter::charge(&mut store, 0)?;
        store.data_mut().delivery.cancel(id);
        Ok(())
    })
}

fn open(
    mut store: Store<'_>,
    (contract, operation, provider): (Name, Name, Option<Name>),
) -> wasmtime::Result<(Fallible<u32>,)> {
    let names = contract.copied() + operation.copied() + provider.as_ref().map_or(0, Name::copied);
    meter::charge(&mut store, names)?;
    let names = (contract.within(), operation.within(), provider.map(Name::within).transpose());
    outcome(match names {
        (Ok(contract), Ok(operation), Ok(provider)) => {
            store.data_mut().open(&contract, &operation, provider.as_deref())
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => Err(error),
    })
}

fn call(
    mut store: Store<'_>,
    target: u32,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, OnePiece<Fallible<Bytes>>> {
    // The request is sent before the future is made, because the future is copied to the heap and should hold only the
    // wait.
    let sent = send_call(&mut store, target, &payload, &options);
    Box::new(async move {
        let answer = match sent? {
            Ok(pending) => pending.answer().await,
            Err(error) => Err(error),
        };
        if let Ok(payload) = &answer {
            store.data().peer.note_size(payload);
            meter::charge_more(&mut store, payload.len())?;
        }
        in_one_piece(answer)
    })
}

fn send_call(
    store: &mut Store<'_>,
    target: u32,
    payload: &Payload,
    options: &abi::Options,
) -> wasmtime::Result<Result<PendingCall, Error>> {
    Ok(match take(store, payload, 0)? {
        Ok(payload) => send_carried(store, target, payload.into(), options),
        Err(error) => Err(error),
    })
}

fn send_carried(
    store: &mut Store<'_>,
    target: u32,
    carried: Carried,
    options: &abi::Options,
) -> Result<PendingCall, Error> {
    let (sent, others_ran) = switch(|| store.data_mut().call(target, carried, options));
    if let Some(until) = others_ran {
        store.data().sandbox.meter.go_on(until);
    }
    sent.map(|sent| store.data().bus.watch(sent))
}

/// Calls an operation for a guest that knows nothing of messages.
pub(crate) async fn call_contract(
    store: &mut Store<'_>,
    contract: &str,
    operation: &str,
    carried: Carried,
) -> wasmtime::Result<Result<Bytes, Error>> {
    let bytes = match &carried {
        Carried::Payload(payload) => payload.len(),
        Carried::Values(values) => size(values.bytes()),
    };
    meter::charge(store, bytes)?;
    let state = store.data_mut();
    let fits = match &carried {
        Carried::Payload(payload) => state.peer.check_size(payload),
        Carried::Values(_) => Ok(()),
    };
    let target = fits.and_then(|()| state.open(contract, operation, None));
    let options = abi::Options { timeout_ms: None, parent: None };
    let sent = target.and_then(|target| send_carried(store, target, carried, &options));
    let answer = match sent {
        Ok(pending) => pending.answer().await,
        Err(error) => Err(error),
    };
    if let Ok(payload) = &answer {
        store.data().peer.note_size(payload);
        meter::charge_more(store, payload.len())?;
    }
    Ok(answer)
}

fn send(
    mut store: Store<'_>,
    target: u32,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, Fallible<u64>> {
    Box::new(async move {
        let payload = take(&mut store, &payload, 0)?;
        match payload.and_then(|payload| store.data_mut().send(target, payload, &options)) {
            Ok((id, sending)) => {
                sending.sent().await;
                outcome(Ok(id))
            }
            Err(error) => outcome(Err(error)),
        }
    })
}
