//! `weir:iec/events`, `lifecycle`, `peers` and `log`: what a guest tells others, and who they are.

use bytes::Bytes;
use wasmtime::component::LinkerInstance;

use super::{Async, Fallible, Store, abi, meter, outcome};
use crate::{bus::PeerId, extension::state::State, logs::harmless};

pub(super) fn add_events(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "subscribe",
        |mut store: Store<'_>, (pattern,): (String,)| -> Async<'_, Fallible<u32>> {
            Box::new(async move {
                meter::charge(&mut store, pattern.len()).await?;
                let State { bus, peer, .. } = store.data();
                outcome(bus.subscribe(peer, peer.inbox(), &pattern).map(|subscription| subscription.number()))
            })
        },
    )?;
    linker.func_wrap_async(
        "unsubscribe",
        |mut store: Store<'_>, (number,): (u32,)| -> Async<'_, Fallible<()>> {
            Box::new(async move {
                meter::charge(&mut store, 0).await?;
                let State { bus, peer, .. } = store.data();
                outcome(bus.unsubscribe(peer, number))
            })
        },
    )?;
    linker.func_wrap_async("publish", |store, (topic, payload)| publish(store, None, topic, payload))?;
    linker.func_wrap_async("publish-to", |store, (extension, topic, payload)| {
        publish(store, Some(extension), topic, payload)
    })
}

fn publish(
    mut store: Store<'_>,
    to: Option<String>,
    topic: String,
    payload: Bytes,
) -> Async<'_, Fallible<abi::Receipt>> {
    Box::new(async move {
        let names = topic.len() + to.as_ref().map_or(0, String::len);
        meter::charge(&mut store, payload.len() + names).await?;
        let State { bus, peer, .. } = store.data();
        let published = bus.publish(peer, to.as_deref(), &topic, payload);
        let compared = bus.patterns();
        if let Ok(receipt) = &published {
            meter::fan_out(&mut store, receipt.delivered + receipt.shed, compared).await;
        }
        outcome::<abi::Receipt>(published.map(Into::into))
    })
}

pub(super) fn add_lifecycle(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap_async("ready", |mut store: Store<'_>, ()| {
        Box::new(async move {
            meter::charge(&mut store, 0).await?;
            store.data_mut().declare_ready().await;
            Ok(())
        })
    })?;
    linker.func_wrap_async("interrupted", |mut store: Store<'_>, (reason,): (String,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len()).await?;
            store.data_mut().declare_interrupted(reason).await;
            Ok(())
        })
    })?;
    linker.func_wrap_async("error", |mut store: Store<'_>, (reason,): (String,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len()).await?;
            store.data_mut().fault = Some(harmless(&reason, 1024));
            Ok(())
        })
    })
}

pub(super) fn add_peers(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap("own-name", |store: Store<'_>, ()| Ok((store.data().peer.name().to_owned(),)))?;
    linker.func_wrap("name-of", |store: Store<'_>, (peer,): (u32,)| Ok((store.data().name_of(PeerId(peer)),)))
}

pub(super) fn add_log(linker: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "write",
        |mut store: Store<'_>, (level, message, fields): (abi::Level, String, Vec<abi::Field>)| {
            Box::new(async move {
                let bytes = fields.iter().map(|field| field.name.len() + field.value.len()).sum::<usize>();
                meter::charge(&mut store, message.len() + bytes).await?;
                let fields = fields.into_iter().map(|field| (field.name, field.value));
                store.data().output.log(level.into(), &message, fields);
                Ok(())
            })
        },
    )
}
