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
//! There a slice is only cut short, in a way that gives no fuel back in either case.

mod slice;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{CallHook, Store, StoreContextMut};
use weir_config::{LimitKey, Limits};
use weir_metrics::Usage;
use weir_schedule::Activity;

use self::slice::{Fuel, Slice};

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

/// What a Store holds of which the fuel is metered.
pub(super) trait Metered: 'static {
    fn meter(&self) -> &Meter;

    fn meter_mut(&mut self) -> &mut Meter;
}

/// What one guest has burnt.
#[derive(Debug)]
pub(super) struct Meter {
    per_message: u64,
    to_start: u64,
    usage: Arc<Usage>,
    activity: Arc<Activity>,
    /// Messages of the last delivery; none yet while the guest starts.
    messages: u64,
    /// Fuel that those brought.
    budget: u64,
    slice: Slice,
    /// Fuel for the host's work that has not been taken out of the Store yet.
    owed: u64,
    call: HostCall,
    /// The import that waits while the guest makes room for what it gives.
    outer: HostCall,
}

/// A call of the guest's into the host.
#[derive(Clone, Copy, Debug, Default)]
struct HostCall {
    /// The activation in which it began.
    entered: u64,
    kind: CallKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallKind {
    /// An instruction, or an import that has not said so yet.
    #[default]
    Unknown,
    /// Of `weir:iec`.
    Own,
    Wasi,
}

impl Meter {
    pub(super) fn new(limits: &Limits, usage: Arc<Usage>, activity: Arc<Activity>) -> Self {
        Self {
            per_message: limits.fuel_per_message,
            to_start: limits.fuel_to_start,
            usage,
            activity,
            messages: 0,
            budget: limits.fuel_to_start,
            slice: Slice::new(limits.fixed().fuel_slice, limits.fuel_to_start),
            owed: 0,
            call: HostCall::default(),
            outer: HostCall::default(),
        }
    }

    /// The limit that the fuel of this moment comes from, and how much it was.
    pub(super) fn budget(&self) -> (LimitKey, u64) {
        match self.messages {
            0 => (LimitKey::FUEL_TO_START, self.to_start),
            _ => (LimitKey::FUEL_PER_MESSAGE, self.per_message),
        }
    }

    /// Counts a call of WASI's, which asks for its part of the Store, once or more.
    pub(super) fn enter_wasi(&mut self) {
        if self.call.kind == CallKind::Unknown {
            self.call.kind = CallKind::Wasi;
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

    /// When the guest was woken, if others ran since it called.
    pub(super) fn woken(&self) -> Option<Instant> {
        self.has_waited().then(|| self.activity.began())
    }

    /// The guest goes on after a call in which others ran, until then.
    pub(super) fn go_on(&self, now: Instant) {
        self.activity.begin(now);
    }

    /// Whether others ran since the guest called: it then has a whole slice before it.
    fn has_waited(&self) -> bool {
        self.call.entered != self.activity.number()
    }
}

/// Gives a new Store the fuel to start, and has its calls into the host metered.
pub(super) fn install<G: Metered>(store: &mut Store<G>) -> wasmtime::Result<()> {
    let fuel = store.data().meter().slice.whole(store.data().meter().to_start);
    store.fuel_async_yield_interval(Some(fuel.interval))?;
    store.set_fuel(fuel.fuel)?;
    store.call_hook(|mut store, hook| {
        let meter = store.data_mut().meter_mut();
        match hook {
            CallHook::CallingHost => {
                meter.call = HostCall { entered: meter.activity.number(), kind: CallKind::Unknown };
            }
            CallHook::ReturningFromHost => return leave(&mut store),
            // What the guest has the host do while it makes room for an answer is not the import's.
            CallHook::CallingWasm => meter.outer = meter.call,
            CallHook::ReturningFromWasm => meter.call = meter.outer,
        }
        Ok(())
    });
    Ok(())
}

/// Charges for the call of an import, and `bytes` that the host copies in it.
pub(super) fn charge<G: Metered>(store: &mut StoreContextMut<'_, G>, bytes: usize) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING + bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for bytes that the host copies in the same call.
pub(super) fn charge_more<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    bytes: usize,
) -> wasmtime::Result<()> {
    charge_fuel(store, bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for a call with texts that the host copies, each on its own.
pub(super) fn charge_texts<'t, G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    texts: impl Iterator<Item = &'t String>,
) -> wasmtime::Result<()> {
    let work: u64 = texts.map(|text| TEXT + text.len() as u64 / BYTES_PER_FUEL).sum();
    charge_fuel(store, CROSSING + work)
}

/// Charges for a call that handles so many things, each of which takes about as long as a call.
pub(super) fn charge_each<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    things: usize,
) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING.saturating_mul(things as u64 + 1))
}

/// Charges for messages that were delivered, each of which brings its budget along.
pub(super) fn deliver<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    messages: usize,
) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let messages = messages as u64;
    let meter = store.data_mut().meter_mut();
    meter.show(left);
    meter.call.kind = CallKind::Own;
    meter.messages = messages;
    meter.budget = meter.per_message.saturating_mul(messages);
    let budget = meter.budget;
    let work = std::mem::take(&mut meter.owed).saturating_add(CROSSING.saturating_mul(messages));
    set(store, left, budget, work)
}

/// Counts what one publish took the host as work of the publisher's: it yields the sooner, and is
/// never trapped for it. A delivery takes about as long as a call into the host.
pub(super) fn fan_out<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    deliveries: u32,
    compared: u32,
) -> wasmtime::Result<()> {
    let work = CROSSING * u64::from(deliveries) + COMPARISON * u64::from(compared);
    let left = store.get_fuel()?;
    set(store, left, left, work)
}

/// Shows what the guest has used so far: it is about to wait.
pub(super) fn show<G: Metered>(store: &StoreContextMut<'_, G>) {
    store.data().meter().show(store.get_fuel().unwrap_or_default());
}

/// Shows what the guest has used to its end.
pub(super) fn finish<G: Metered>(store: &Store<G>) {
    let meter = store.data().meter();
    meter.show(store.get_fuel().unwrap_or_default());
    meter.usage.fuel_per_message.clear();
    meter.usage.fuel_to_start.clear();
}

/// Charges for `work` of the host in an import of Weir's own, in units of fuel.
pub(super) fn charge_fuel<G: Metered>(store: &mut StoreContextMut<'_, G>, work: u64) -> wasmtime::Result<()> {
    let meter = store.data_mut().meter_mut();
    meter.call.kind = CallKind::Own;
    meter.owed = meter.owed.saturating_add(work);
    if meter.owed < MAX_OWED { Ok(()) } else { collect(store) }
}

/// Takes what the host's work costs out of the Store. With none left, the guest traps as it goes on.
fn collect<G: Metered>(store: &mut StoreContextMut<'_, G>) -> wasmtime::Result<()> {
    let work = std::mem::take(&mut store.data_mut().meter_mut().owed);
    let left = store.get_fuel()?;
    set(store, left, left.saturating_sub(work), work)
}

/// The guest goes on: with a whole slice if others ran in the host, which only imports and yields let
/// them.
fn leave<G: Metered>(store: &mut StoreContextMut<'_, G>) -> wasmtime::Result<()> {
    let meter = store.data().meter();
    let is_late = || meter.activity.elapsed() >= slice::TIME;
    if meter.has_waited() {
        let left = store.get_fuel()?;
        let fuel = store.data_mut().meter_mut().slice.begin(left);
        return apply(store, fuel);
    }
    match meter.call.kind {
        CallKind::Wasi if meter.owed >= MAX_OWED || is_late() => collect(store),
        CallKind::Unknown if is_late() => {
            let left = store.get_fuel()?;
            match store.data_mut().meter_mut().slice.cut(left) {
                Some(fuel) => apply(store, fuel),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Sets the fuel of which there is `left` to `new`, and the rest of the slice, of which the host's
/// `work` took a part, too.
fn set<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    left: u64,
    new: u64,
    work: u64,
) -> wasmtime::Result<()> {
    let meter = store.data_mut().meter_mut();
    let elapsed = if meter.has_waited() {
        // What was burnt before is no part of this slice, which has just begun.
        meter.slice.begin(left);
        meter.call.entered = meter.activity.number();
        Duration::ZERO
    } else {
        meter.activity.elapsed()
    };
    meter.show(left);
    let fuel = meter.slice.go_on(left, new, work, elapsed)?;
    apply(store, fuel)
}

fn apply<G: Metered>(store: &mut StoreContextMut<'_, G>, fuel: Fuel) -> wasmtime::Result<()> {
    store.fuel_async_yield_interval(Some(fuel.interval))?;
    store.set_fuel(fuel.fuel)
}
