//! `weir:iec/events`: subscribing and publishing.

use wasmtime::component::LinkerInstance;

use super::{Async, Fallible, Name, Payload, Store, abi, meter, outcome, take};
use crate::instance_state::InstanceState;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("subscribe", |mut store: Store<'_>, (pattern,): (Name,)| {
        meter::charge(&mut store, pattern.copied())?;
        let InstanceState { bus, peer, .. } = store.data();
        let subscribed =
            pattern.within().and_then(|pattern| bus.subscribe(peer, peer.inbox(), &pattern, None));
        outcome(subscribed.map(|subscription| subscription.number()))
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
    to: Option<Name>,
    topic: Name,
    payload: Payload,
    options: abi::Options,
) -> Async<'_, Fallible<abi::Receipt>> {
    Box::new(async move {
        let names = topic.copied() + to.as_ref().map_or(0, Name::copied);
        let payload = take(&mut store, &payload, names)?;
        let (to, topic, payload) = match (to.map(Name::within).transpose(), topic.within(), payload) {
            (Ok(to), Ok(topic), Ok(payload)) => (to, topic, payload),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return outcome(Err(error)),
        };
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
                // All subscriptions of the one receiver may have been compared.
                meter::fan_out(&mut store, 0, compared_at_most)?;
                return outcome(Err(error));
            }
        };
        meter::fan_out(&mut store, publishing.deliveries(), publishing.compared)?;
        outcome(publishing.receipt().await.map(Into::into))
    })
}
