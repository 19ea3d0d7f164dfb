//! `weir:iec/events`, `lifecycle`, `peers` and `log`: what a guest tells others, and who they are.

use wasmtime::component::LinkerInstance;
use weir_bus::PeerId;
use weir_names::harmless;

use super::{Async, Fallible, Payload, Store, abi, meter, outcome, take};
use crate::instance_state::InstanceState;

pub(super) fn add_events(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("subscribe", |mut store: Store<'_>, (pattern,): (String,)| {
        meter::charge(&mut store, pattern.len())?;
        let InstanceState { bus, peer, .. } = store.data();
        outcome(bus.subscribe(peer, peer.inbox(), &pattern, None).map(|subscription| subscription.number()))
    })?;
    linker.func_wrap("unsubscribe", |mut store: Store<'_>, (number,): (u32,)| {
        meter::charge(&mut store, 0)?;
        let InstanceState { bus, peer, .. } = store.data();
        outcome(bus.unsubscribe(peer, number))
    })?;
    linker.func_wrap_async("publish", |store, (topic, payload, options)| {
        publish(store, None, topic, payload, options)
    })?;
    linker.func_wrap_async("publish-to", |store, (to, topic, payload, options)| {
        publish(store, Some(to), topic, payload, options)
    })
}

fn publish(
    mut store: Store<'_>,
    to: Option<String>,
    topic: String,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, Fallible<abi::Receipt>> {
    Box::new(async move {
        let names = topic.len() + to.as_ref().map_or(0, String::len);
        let payload = take(&mut store, &payload, names)?;
        let state = store.data();
        let compared_at_most = if to.is_some() {
            u32::try_from(state.sandbox.fixed.subscriptions).unwrap_or(u32::MAX)
        } else {
            0
        };
        let publishing = state
            .times(&options)
            .and_then(|times| state.bus.publish(&state.peer, to.as_deref(), &topic, payload, times));
        let publishing = match publishing {
            Ok(publishing) => publishing,
            Err(error) => {
                // To one alone, all its subscriptions may have been looked at.
                meter::fan_out(&mut store, 0, compared_at_most)?;
                return outcome(Err(error));
            }
        };
        meter::fan_out(&mut store, publishing.deliveries(), publishing.compared)?;
        outcome(publishing.receipt().await.map(Into::into))
    })
}

pub(super) fn add_lifecycle(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap_async("ready", |mut store: Store<'_>, ()| {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            store.data_mut().delivery.readiness.ready().await;
            Ok(())
        })
    })?;
    linker.func_wrap_async("interrupted", |mut store: Store<'_>, (reason,): (String,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len())?;
            store.data_mut().delivery.readiness.interrupted(reason).await;
            Ok(())
        })
    })?;
    linker.func_wrap("error", |mut store: Store<'_>, (reason,): (String,)| {
        meter::charge(&mut store, reason.len())?;
        store.data_mut().fault = Some(harmless(&reason, 1024));
        Ok(())
    })
}

pub(super) fn add_peers(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("own-name", |mut store: Store<'_>, ()| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().peer.name().to_owned(),))
    })?;
    linker.func_wrap("name-of", |mut store: Store<'_>, (peer,): (u32,)| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().name_of(PeerId(peer)),))
    })
}

pub(super) fn add_log(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "write",
        |mut store: Store<'_>, (level, message, fields): (abi::Level, String, Vec<abi::Field>)| {
            let texts = fields.iter().flat_map(|field| [&field.name, &field.value]);
            meter::charge_texts(&mut store, texts.chain([&message]))?;
            let fields = fields.into_iter().map(|field| (field.name, field.value));
            store.data().output.log(level.into(), &message, fields);
            Ok(())
        },
    )
}
