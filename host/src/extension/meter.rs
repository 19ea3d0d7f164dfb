//! Fuel: what a guest may use for one message, and when it must let others run.
//!
//! wasmtime yields every [`SLICE`] of fuel that a guest burns, but setting a Store's fuel begins a
//! new slice, so that a guest which calls imports all the time would never yield. Every import
//! therefore counts here what was burnt since the last yield, and yields by itself past a slice.

use wasmtime::{StoreContextMut, Trap};

use super::state::State;

/// Fuel after which a guest lets others run: well under a millisecond of code.
pub(super) const SLICE: u64 = 100_000;

/// Budget before the first message, as a multiple of `fuel-per-message`.
const START_FACTOR: u64 = 10;

/// Fuel that crossing into the host costs, about the time it takes.
const CROSSING: u64 = 500;

/// Fuel that comparing a topic with one pattern takes.
const COMPARISON: u64 = 100;

/// Bytes that are copied for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

/// What one guest has burnt.
#[derive(Debug)]
pub(super) struct Meter {
    per_message: u64,
    /// Fuel in the Store when it was last set.
    set: u64,
    /// Fuel burnt since the guest last let others run.
    since_yield: u64,
    /// Messages of the last delivery; none yet while the guest starts.
    messages: u64,
}

impl Meter {
    pub(super) fn new(per_message: u64) -> Self {
        Self { per_message, set: per_message.saturating_mul(START_FACTOR), since_yield: 0, messages: 0 }
    }

    /// Fuel for the time before the first message.
    pub(super) fn start_budget(&self) -> u64 {
        self.set
    }

    /// What the fuel of this moment was given for, and how much it was.
    pub(super) fn budget(&self) -> (&'static str, u64) {
        match self.messages {
            0 => ("fuel to start (10 × `fuel-per-message`)", self.per_message.saturating_mul(START_FACTOR)),
            1 => ("`fuel-per-message`", self.per_message),
            more => ("`fuel-per-message` of a batch", self.per_message.saturating_mul(more)),
        }
    }
}

/// Charges a crossing that moved `bytes`, and lets others run if the slice is used up.
pub(super) async fn charge(store: &mut StoreContextMut<'_, State>, bytes: usize) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let cost = CROSSING + bytes as u64 / BYTES_PER_FUEL;
    settle(store, left, left.checked_sub(cost).ok_or(Trap::OutOfFuel)?, cost).await
}

/// Charges a crossing that delivered `messages`, each of which brings its budget along.
pub(super) async fn deliver(store: &mut StoreContextMut<'_, State>, messages: usize) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let messages = messages as u64;
    let meter = &mut store.data_mut().meter;
    meter.messages = messages;
    let budget = meter.per_message.saturating_mul(messages);
    settle(store, left, budget, CROSSING * messages).await
}

async fn settle(
    store: &mut StoreContextMut<'_, State>,
    left: u64,
    new: u64,
    cost: u64,
) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    meter.since_yield += meter.set.saturating_sub(left) + cost;
    meter.set = new;
    let yields = meter.since_yield >= SLICE;
    if yields {
        meter.since_yield = 0;
    }
    store.set_fuel(new)?;
    if yields {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Counts what one publish took the host as work of the publisher's: it yields the sooner, and is
/// never trapped for it. A delivery takes about as long as a crossing.
pub(super) async fn fan_out(store: &mut StoreContextMut<'_, State>, deliveries: u32, compared: u32) {
    let meter = &mut store.data_mut().meter;
    let cost = CROSSING * u64::from(deliveries) + COMPARISON * u64::from(compared);
    meter.since_yield = meter.since_yield.saturating_add(cost);
    if meter.since_yield >= SLICE {
        meter.since_yield = 0;
        tokio::task::yield_now().await;
    }
}
