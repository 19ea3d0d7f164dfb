//! `weir:iec/requests`: requests to others.

use bytes::Bytes;
use wasmtime::component::LinkerInstance;

use super::{Async, Fallible, Store, abi, meter, outcome};
use crate::{
    bus::{Error, PendingCall},
    extension::state::State,
};

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap_async("open", |store, (contract, operation, provider)| {
        open(store, contract, operation, provider)
    })?;
    linker
        .func_wrap_async("call", |store, (target, payload, options)| call(store, target, payload, options))?;
    linker
        .func_wrap_async("send", |store, (target, payload, options)| send(store, target, payload, options))?;
    linker.func_wrap_async("cancel", |mut store, (id,): (u64,)| {
        Box::new(async move {
            meter::charge(&mut store, 0).await?;
            store.data_mut().cancel(id);
            Ok(())
        })
    })
}

fn open(
    mut store: Store<'_>,
    contract: String,
    operation: String,
    provider: Option<String>,
) -> Async<'_, Fallible<u32>> {
    Box::new(async move {
        let names = contract.len() + operation.len() + provider.as_ref().map_or(0, String::len);
        meter::charge(&mut store, names).await?;
        outcome(store.data_mut().open(&contract, &operation, provider.as_deref()))
    })
}

fn call(
    mut store: Store<'_>,
    target: u32,
    payload: Bytes,
    options: abi::Options,
) -> Async<'_, Fallible<Bytes>> {
    Box::new(async move {
        meter::charge(&mut store, payload.len()).await?;
        let answer = match store.data_mut().call(target, payload, &options) {
            Ok(pending) => pending.answer().await,
            Err(error) => Err(error),
        };
        if let Ok(payload) = &answer {
            meter::charge(&mut store, payload.len()).await?;
        }
        outcome(answer)
    })
}

fn send(
    mut store: Store<'_>,
    target: u32,
    payload: Bytes,
    options: abi::Options,
) -> Async<'_, Fallible<u64>> {
    Box::new(async move {
        meter::charge(&mut store, payload.len()).await?;
        outcome(store.data_mut().send(target, payload, &options))
    })
}

impl State {
    fn call(&mut self, target: u32, payload: Bytes, options: &abi::Options) -> Result<PendingCall, Error> {
        self.send_to(target, options, |bus, peer, target, deadline| {
            bus.call(peer, target, payload, deadline, true)
        })
    }

    fn send(&mut self, target: u32, payload: Bytes, options: &abi::Options) -> Result<u64, Error> {
        self.check_under_way()?;
        let waiter = self.send_to(target, options, |bus, peer, target, deadline| {
            bus.send(peer, target, payload, deadline)
        })?;
        Ok(self.sent(waiter))
    }
}
