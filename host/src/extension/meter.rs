//! Fuel: what a guest may use for one message, and when it must let others run.
//!
//! wasmtime takes a unit for each instruction and yields after a slice of them. What the guest has
//! the host do is counted here, import by import: it is taken out of the same fuel and shortens the
//! same slice. Since setting a Store's fuel begins a new slice there, the rest of the one under way is
//! set with it, or a guest that calls the host all the time would never yield.
//!
//! Fuel is set where compiled code has stored what it has left and will read it again: in imports, and
//! where it yields. The call hook, which sees the end of WASI's functions, is also called for
//! instructions that the host carries out, such as `memory.grow`, around which it does neither, and
//! for the strings that components inside one extension pass to each other, around which it does.
//! There a slice is only cut short, in a way that gives no fuel back in either case: see [`cut`].

use std::{sync::Arc, time::Duration};

use wasmtime::{CallHook, Store, StoreContextMut, Trap};

use super::{state::State, turn::Activity};
use crate::{config::Limits, usage::Usage};

/// Fuel that a call into the host costs, about the time that a cheap one takes.
const CROSSING: u64 = 500;

/// Fuel that comparing a topic with one pattern takes.
const COMPARISON: u64 = 100;

/// Fuel that a text takes beside its bytes, as one of a list.
const TEXT: u64 = 50;

/// Bytes that are copied for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

/// Fuel for the host's work up to which it is only counted: taking it out costs time itself.
const MAX_OWED: u64 = 8 * CROSSING;

/// Time after which a slice ends for a guest that has the host work: calls differ in what they cost.
const SLICE_TIME: Duration = Duration::from_micros(250);

/// Times that a guest may be charged though it should have yielded. It would at the next loop or
/// function: only code that was made without any gets here.
const MAX_OVERDUE: u32 = 400;

/// The same where it takes long, too.
const MAX_OVERDUE_FOR_LONG: u32 = 16;
const LONG: Duration = Duration::from_millis(10);

/// What one guest has burnt.
#[derive(Debug)]
pub(super) struct Meter {
    per_message: u64,
    to_start: u64,
    slice: u64,
    usage: Arc<Usage>,
    activity: Arc<Activity>,
    /// Messages of the last delivery; none yet while the guest starts.
    messages: u64,
    /// Fuel that those brought.
    budget: u64,
    /// Fuel in the Store when it was last set, after how much of it wasmtime yields, and in which
    /// activation of the guest that was.
    set: u64,
    interval: u64,
    activation: u64,
    /// Fuel of it that wasmtime keeps back until the guest yields.
    reserve: u64,
    /// Fuel burnt in that activation before it was set.
    since_yield: u64,
    /// Times that it was charged past the end of its slice.
    overdue: u32,
    /// Fuel for the host's work that has not been taken out of the Store yet.
    owed: u64,
    /// An import is under way, or waits while the guest makes room for what it gives.
    in_import: bool,
    outer_import: bool,
    /// The activation in which the guest last went into the host, and the last that was cut short.
    entered: u64,
    cut: u64,
}

impl Meter {
    pub(super) fn new(limits: &Limits, usage: Arc<Usage>, activity: Arc<Activity>) -> Self {
        let slice = limits.fixed().fuel_slice;
        Self {
            per_message: limits.fuel_per_message,
            to_start: limits.fuel_to_start,
            slice,
            usage,
            activity,
            messages: 0,
            budget: limits.fuel_to_start,
            set: limits.fuel_to_start,
            interval: slice,
            activation: 0,
            reserve: limits.fuel_to_start.saturating_sub(slice),
            since_yield: 0,
            overdue: 0,
            owed: 0,
            in_import: false,
            outer_import: false,
            entered: 0,
            cut: 0,
        }
    }

    /// The limit that the fuel of this moment comes from, and how much it was.
    pub(super) fn budget(&self) -> (&'static str, u64) {
        match self.messages {
            0 => ("fuel-to-start", self.to_start),
            _ => ("fuel-per-message", self.per_message),
        }
    }

    /// Counts a call of WASI's, which asks for its part of the Store, once or more.
    pub(super) fn enter_wasi(&mut self) {
        if !std::mem::replace(&mut self.in_import, true) {
            self.owed = self.owed.saturating_add(CROSSING);
        }
    }

    /// Shows what was used of the budget.
    fn show(&self, left: u64) {
        let used = self.budget.saturating_sub(left).saturating_add(self.owed).min(self.budget);
        match self.messages {
            0 => self.usage.fuel_to_start.set(used),
            messages => self.usage.fuel_per_message.set(used / messages),
        }
    }

    /// How much of a slice was burnt by now, `left` being in the Store.
    fn burnt(&self, left: u64) -> u64 {
        let burnt = self.set.saturating_sub(left);
        if self.activation == self.activity.number() {
            self.since_yield.saturating_add(burnt)
        } else {
            // It has yielded since, after each `interval`.
            burnt % self.interval.max(1)
        }
    }
}

/// Gives a new Store the fuel to start, and has its calls into the host metered.
pub(super) fn install(store: &mut Store<State>) -> wasmtime::Result<()> {
    let (start, slice) = (store.data().meter.set, store.data().meter.slice);
    store.fuel_async_yield_interval(Some(slice))?;
    store.set_fuel(start)?;
    store.call_hook(|mut store, hook| {
        let meter = &mut store.data_mut().meter;
        match hook {
            CallHook::CallingHost => meter.entered = meter.activity.number(),
            CallHook::ReturningFromHost => return leave(&mut store),
            // What the guest has the host do while it makes room for an answer is not the import's.
            CallHook::CallingWasm => meter.outer_import = std::mem::take(&mut meter.in_import),
            CallHook::ReturningFromWasm => meter.in_import = std::mem::take(&mut meter.outer_import),
        }
        Ok(())
    });
    Ok(())
}

/// Charges for the call of an import, and `bytes` that the host copies in it.
pub(super) fn charge(store: &mut StoreContextMut<'_, State>, bytes: usize) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING + bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for bytes that the host copies in the same call.
pub(super) fn charge_more(store: &mut StoreContextMut<'_, State>, bytes: usize) -> wasmtime::Result<()> {
    charge_fuel(store, bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for a call with texts that the host copies, each on its own.
pub(super) fn charge_texts<'t>(
    store: &mut StoreContextMut<'_, State>,
    texts: impl Iterator<Item = &'t String>,
) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING + texts.map(|text| TEXT + text.len() as u64 / BYTES_PER_FUEL).sum::<u64>())
}

/// Charges for `messages` that were delivered, each of which brings its budget along.
pub(super) fn deliver(store: &mut StoreContextMut<'_, State>, messages: usize) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let messages = messages as u64;
    let meter = &mut store.data_mut().meter;
    meter.show(left);
    meter.in_import = true;
    meter.messages = messages;
    meter.budget = meter.per_message.saturating_mul(messages);
    let budget = meter.budget;
    let work = std::mem::take(&mut meter.owed).saturating_add(CROSSING.saturating_mul(messages));
    set(store, left, budget, work)
}

/// Counts what one publish took the host as work of the publisher's: it yields the sooner, and is
/// never trapped for it. A delivery takes about as long as a call into the host.
pub(super) fn fan_out(
    store: &mut StoreContextMut<'_, State>,
    deliveries: u32,
    compared: u32,
) -> wasmtime::Result<()> {
    let work = CROSSING * u64::from(deliveries) + COMPARISON * u64::from(compared);
    let left = store.get_fuel()?;
    set(store, left, left, work)
}

/// Shows what the guest has used to its end.
pub(super) fn finish(store: &Store<State>) {
    let left = store.get_fuel().unwrap_or_default();
    store.data().meter.show(left);
}

/// Charges for `work` of the host in an import, in units of fuel.
pub(super) fn charge_fuel(store: &mut StoreContextMut<'_, State>, work: u64) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    meter.in_import = true;
    meter.owed = meter.owed.saturating_add(work);
    if meter.owed < MAX_OWED { Ok(()) } else { collect(store) }
}

/// Takes what the host's work costs out of the Store.
fn collect(store: &mut StoreContextMut<'_, State>) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    let work = std::mem::take(&mut meter.owed);
    let left = store.get_fuel()?;
    let new = left.checked_sub(work).ok_or(Trap::OutOfFuel)?;
    set(store, left, new, work)
}

/// The guest goes on: with a whole slice if it has let others run in the host, which only imports and
/// yields do.
fn leave(store: &mut StoreContextMut<'_, State>) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    let was_import = std::mem::take(&mut meter.in_import);
    if meter.entered != meter.activity.number() {
        if was_import && meter.interval == meter.slice {
            return Ok(());
        }
        let left = store.get_fuel()?;
        return set(store, left, left, 0);
    }
    match was_import {
        true if meter.owed >= MAX_OWED => collect(store),
        false if meter.cut != meter.entered && meter.activity.elapsed() >= SLICE_TIME => cut(store),
        _ => Ok(()),
    }
}

/// Has the guest yield at the next loop or function, at the cost of what it had left of the slice.
///
/// That part is in the guest's own hands. If it reads it again, it finds one unit. If it goes on with
/// what it had, and stores that in its time, it has what is kept back and that, as before: it has
/// gained nothing, but in its very last slice, where what it can gain becomes half as much each time.
fn cut(store: &mut StoreContextMut<'_, State>) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let meter = &mut store.data_mut().meter;
    meter.cut = meter.entered;
    let new = match meter.reserve.min(left) {
        0 => (left / 2).max(1),
        reserve => reserve + 1,
    };
    meter.set = new;
    meter.interval = 1;
    meter.reserve = new - 1;
    store.fuel_async_yield_interval(Some(1))?;
    store.set_fuel(new)
}

/// Sets the fuel of which there is `left` to `new`, and the rest of the slice, of which the host's
/// `work` took a part, too.
fn set(store: &mut StoreContextMut<'_, State>, left: u64, new: u64, work: u64) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    let burnt = meter.burnt(left).saturating_add(work);
    let is_over = burnt >= meter.slice || meter.activity.elapsed() >= SLICE_TIME;
    let is_overdue = is_over && meter.interval == 1 && meter.activation == meter.activity.number();
    meter.overdue = if is_overdue { meter.overdue + 1 } else { 0 };
    let takes_long = meter.overdue > MAX_OVERDUE_FOR_LONG && meter.activity.elapsed() > LONG;
    if meter.overdue > MAX_OVERDUE || takes_long {
        return Err(wasmtime::Error::new(NeverYields));
    }
    meter.activation = meter.activity.number();
    meter.since_yield = burnt;
    // With one unit it yields at the next loop or function.
    meter.interval = if is_over { 1 } else { meter.slice - burnt };
    meter.set = new;
    meter.reserve = new.saturating_sub(meter.interval);
    let interval = meter.interval;
    store.fuel_async_yield_interval(Some(interval))?;
    store.set_fuel(new)
}

/// A guest that calls the host again and again and never comes to where it would yield.
#[derive(Debug, thiserror::Error)]
#[error("calls the host without a loop or a function between, and lets nobody else run")]
struct NeverYields;
