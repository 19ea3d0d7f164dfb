//! Fuel: how much a guest may use for one message, and when it must let others run.
//!
//! wasmtime takes one unit for most instructions, and yields after each slice. The host's work for the guest is counted
//! here, import by import: it costs the same fuel and shortens the same slice. Setting a Store's fuel begins a new
//! slice there. So the rest of the current slice is set with it, or a guest that keeps calling the host would never
//! yield.
//!
//! Fuel may be set where compiled code has saved it and will reload it: in imports and at yields. The call hook sees
//! the end of WASI's functions. It also fires for instructions that the host carries out, such as `memory.grow`, and
//! for strings passed between components; compiled code saves and reloads its fuel only around the latter. At the end
//! of these other calls, a slice is only cut short, in a way that gives back no fuel but some of a guest's last slice.

mod slice;

use std::{sync::Arc, time::Duration};

use wasmtime::{CallHook, Store, StoreContextMut, Trap};
use weir_config::{LimitKey, Limits};
use weir_metrics::Usage;
use weir_schedule::Activity;

pub(super) use self::slice::TIME;
use self::slice::{Fuel, Slice};
use super::exit::Uncaught;

/// Fuel for a call into the host, about the time of a cheap one.
const CROSSING: u64 = 500;

/// Fuel for comparing a topic with one pattern.
const COMPARISON: u64 = 100;

/// Fuel for a text in a list, besides its bytes.
const TEXT: u64 = 50;

/// Bytes copied for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

/// The most fuel for a step of a collection, in which wasmtime traces up to 16,384 objects before it lets others run.
const COLLECTION_STEP: u64 = 16_384 * 16;

/// The most bytes of a guest's stack.
const MAX_STACK: usize = 16 << 20;

/// A yield lets others run once, and a collection more often, because its phases each do.
const YIELD: u64 = 1;

/// Up to this much fuel, the host's work is only counted and not yet charged, because taking fuel out of the Store
/// costs time itself.
const MAX_OWED: u64 = 8 * CROSSING;

pub(super) trait Metered: 'static {
    fn meter(&self) -> &Meter;

    fn meter_mut(&mut self) -> &mut Meter;

    /// Bytes of memories and tables.
    fn held(&self) -> u64;
}

/// Counts the fuel of one guest, and knows which limit applies to it now.
#[derive(Debug)]
pub(super) struct Meter {
    per_message: u64,
    to_start: u64,
    usage: Arc<Usage>,
    activity: Arc<Activity>,
    /// The number of messages in the last delivery. 0 while the guest starts.
    messages: u64,
    /// The fuel that these messages brought.
    budget: u64,
    /// The fuel that the guest used of earlier budgets.
    used_before: u64,
    slice: Slice,
    /// Fuel for the host's work, not yet taken out of the Store.
    owed: u64,
    call: HostCall,
    /// The import that waits while the guest makes room for its result.
    outer: HostCall,
    /// Whether the end of each wait brings the fuel of a message.
    renews_at_waits: bool,
    /// Whether it has objects that are collected.
    has_objects: bool,
    /// The address on the guest's stack where the host last called it, from which its depth is measured.
    stack_begin: usize,
    /// The host's calls of the guest that are under way, each within the one before.
    calls: u32,
}

/// A call of the guest into the host.
#[derive(Clone, Copy, Debug, Default)]
struct HostCall {
    /// The activation in which the call began.
    entered: u64,
    kind: CallKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallKind {
    /// An instruction that the host carries out, or an import that is not known yet.
    #[default]
    Unknown,
    /// A function of `weir:iec`.
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
            used_before: 0,
            slice: Slice::new(limits.fixed().fuel_slice, limits.fuel_to_start),
            owed: 0,
            call: HostCall::default(),
            outer: HostCall::default(),
            renews_at_waits: false,
            has_objects: limits.features.have_objects(),
            stack_begin: 0,
            calls: 0,
        }
    }

    /// Makes the end of each wait bring the fuel of a message, for a program that may get none.
    pub(super) fn renew_at_waits(&mut self) {
        self.renews_at_waits = true;
    }

    /// Returns the limit that applies to the fuel now, and its value.
    pub(super) fn budget(&self) -> (LimitKey, u64) {
        match self.messages {
            0 => (LimitKey::FUEL_TO_START, self.to_start),
            _ => (LimitKey::FUEL_PER_MESSAGE, self.per_message),
        }
    }

    /// Charges for the call of a WASI function. Charges only once for a call, although WASI's code may come here more
    /// than once.
    pub(super) fn enter_wasi(&mut self) {
        if self.call.kind == CallKind::Unknown {
            self.call.kind = CallKind::Wasi;
            self.owed = self.owed.saturating_add(CROSSING);
        }
    }

    /// Returns the fuel that the guest used of this budget, with `left` in the Store, and at most the whole budget.
    fn used(&self, left: u64) -> u64 {
        self.budget.saturating_sub(left).saturating_add(self.owed).min(self.budget)
    }

    /// Shows how much fuel of its budget the guest has used, with `left` in the Store.
    fn show(&self, left: u64) {
        let used = self.used(left);
        match self.messages {
            0 => self.usage.fuel_to_start.set(used),
            messages => self.usage.fuel_per_message.set(used / messages),
        }
    }

    /// Returns the [`moment`](weir_metrics::moment) when the guest was woken, if others ran since its call.
    pub(super) fn woken(&self) -> Option<u64> {
        self.has_waited().then(|| self.activity.began_at())
    }

    /// Notes that the guest goes on at this [`moment`](weir_metrics::moment), after others ran within its call.
    pub(super) fn go_on(&self, now: u64) {
        self.activity.begin(now);
    }

    /// Charges for a collection of this many steps: for the stack and all that is `held`, which are looked through without
    /// a pause, and for the objects of each step. Fails if `left` in the Store is too little, because it may be long until
    /// the guest's next call or yield.
    fn collected(&mut self, steps: u64, held: u64, left: u64) -> wasmtime::Result<()> {
        let depth = self.stack_begin.abs_diff(here()).min(MAX_STACK) as u64;
        let copied = held / BYTES_PER_FUEL;
        let work =
            depth.saturating_add(copied).saturating_add(steps.saturating_mul(copied.min(COLLECTION_STEP)));
        self.owed = self.owed.saturating_add(work);
        if self.owed < left { Ok(()) } else { Err(Trap::OutOfFuel.into()) }
    }

    /// Whether others ran since the guest's call. If so, the guest gets a whole slice.
    fn has_waited(&self) -> bool {
        self.call.entered != self.activity.number()
    }
}

/// Returns an address on the stack that is in use.
#[inline(never)]
fn here() -> usize {
    let on_stack = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&on_stack)).addr()
}

/// Gives a new Store the fuel to start, and meters its calls into the host.
pub(super) fn install<G: Metered>(store: &mut Store<G>) -> wasmtime::Result<()> {
    let fuel = store.data().meter().slice.whole(store.data().meter().to_start);
    store.fuel_async_yield_interval(Some(fuel.interval))?;
    store.set_fuel(fuel.fuel)?;
    store.call_hook(|mut store, hook| {
        let has_objects = store.data().meter().has_objects;
        let meter = store.data_mut().meter_mut();
        match hook {
            CallHook::CallingHost => {
                meter.call = HostCall { entered: meter.activity.number(), kind: CallKind::Unknown };
            }
            CallHook::ReturningFromHost => return leave(&mut store),
            // While the guest allocates room for an import's result, it may call the host. Then the import goes on.
            CallHook::CallingWasm => {
                meter.outer = meter.call;
                // The depth is that of the outermost call.
                if has_objects && meter.calls == 0 {
                    meter.stack_begin = here();
                }
                meter.calls += 1;
            }
            CallHook::ReturningFromWasm => {
                meter.call = meter.outer;
                meter.calls = meter.calls.saturating_sub(1);
                // Otherwise a handler around the import whose result needed room could catch it, and go on without.
                if has_objects && meter.calls > 0 && store.take_pending_exception().is_some() {
                    return Err(Uncaught.into());
                }
            }
        }
        Ok(())
    });
    Ok(())
}

/// Charges for a call of an import, and for `bytes` copied in it.
pub(super) fn charge<G: Metered>(store: &mut StoreContextMut<'_, G>, bytes: usize) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING + bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for more bytes copied in the same call.
pub(super) fn charge_more<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    bytes: usize,
) -> wasmtime::Result<()> {
    charge_fuel(store, bytes as u64 / BYTES_PER_FUEL)
}

/// Charges for a call with texts, each copied by itself.
pub(super) fn charge_texts<'t, G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    texts: impl Iterator<Item = &'t String>,
) -> wasmtime::Result<()> {
    let work: u64 = texts.map(|text| TEXT + text.len() as u64 / BYTES_PER_FUEL).sum();
    charge_fuel(store, CROSSING + work)
}

/// Charges for a call that handles this many things, each about as costly as a call.
pub(super) fn charge_each<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    things: usize,
) -> wasmtime::Result<()> {
    charge_fuel(store, CROSSING.saturating_mul(things as u64 + 1))
}

/// Charges for delivered messages and sets the budget that they bring.
pub(super) fn deliver<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    messages: usize,
) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let messages = messages as u64;
    let meter = store.data_mut().meter_mut();
    meter.show(left);
    meter.used_before = meter.used_before.saturating_add(meter.used(left));
    meter.call.kind = CallKind::Own;
    meter.messages = messages;
    meter.activity.deliver(messages);
    // What they bring is not brought again for the wait for them.
    meter.activity.take_wait();
    meter.budget = meter.per_message.saturating_mul(messages);
    let budget = meter.budget;
    let work = std::mem::take(&mut meter.owed).saturating_add(CROSSING.saturating_mul(messages));
    set(store, left, budget, work)
}

/// Counts the work of one publish: the publisher yields sooner, but never runs out of fuel by it. A delivery takes
/// about as long as a call into the host.
pub(super) fn fan_out<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    deliveries: u32,
    compared: u32,
) -> wasmtime::Result<()> {
    let work = CROSSING * u64::from(deliveries) + COMPARISON * u64::from(compared);
    let left = store.get_fuel()?;
    set(store, left, left, work)
}

/// Shows the guest's use before it waits.
pub(super) fn show<G: Metered>(store: &StoreContextMut<'_, G>) {
    store.data().meter().show(store.get_fuel().unwrap_or_default());
}

/// Returns the fuel that the guest has used since it began.
pub(super) fn used<G: Metered>(store: &StoreContextMut<'_, G>) -> u64 {
    let meter = store.data().meter();
    meter.used_before.saturating_add(meter.used(store.get_fuel().unwrap_or_default()))
}

/// Notes the guest's use at its end among the peaks, and shows no present use any more.
pub(super) fn finish<G: Metered>(store: &Store<G>) {
    let meter = store.data().meter();
    meter.show(store.get_fuel().unwrap_or_default());
    meter.usage.fuel_per_message.clear();
    meter.usage.fuel_to_start.clear();
}

/// Charges for `work` of the host in an import of Weir's, in units of fuel.
pub(super) fn charge_fuel<G: Metered>(store: &mut StoreContextMut<'_, G>, work: u64) -> wasmtime::Result<()> {
    let meter = store.data_mut().meter_mut();
    meter.call.kind = CallKind::Own;
    meter.owed = meter.owed.saturating_add(work);
    if meter.owed < MAX_OWED { Ok(()) } else { collect(store) }
}

/// Takes the host's work out of the Store. With no fuel left, the guest traps when it goes on.
fn collect<G: Metered>(store: &mut StoreContextMut<'_, G>) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let meter = store.data_mut().meter_mut();
    meter.show(left);
    let work = std::mem::take(&mut meter.owed);
    set(store, left, left.saturating_sub(work), work)
}

/// Lets the guest go on after a call into the host. If others ran meanwhile, which only imports, yields and collections
/// allow, the guest gets a whole slice. After a collection it only owes fuel, because compiled code holds its own count.
/// Otherwise WASI's work is charged if it is much or the guest is late, and after an unknown call the slice of a late guest
/// is cut.
fn leave<G: Metered>(store: &mut StoreContextMut<'_, G>) -> wasmtime::Result<()> {
    let meter = store.data().meter();
    let is_late = || meter.activity.elapsed() >= slice::TIME;
    // Fuel is not set within a call that is no import's: see above.
    if meter.renews_at_waits && meter.call.kind != CallKind::Unknown && meter.activity.take_wait() {
        let (left, meter) = (store.get_fuel()?, store.data().meter());
        if meter.messages <= 1 || left < meter.per_message {
            return deliver(store, 1);
        }
        // Several messages have brought more than a wait does.
        meter.activity.deliver(meter.messages);
    }
    let meter = store.data().meter();
    if meter.has_waited() {
        let left = store.get_fuel()?;
        let steps = meter.activity.number().saturating_sub(meter.call.entered);
        if meter.has_objects && meter.call.kind == CallKind::Unknown && steps > YIELD {
            let held = store.data().held();
            return store.data_mut().meter_mut().collected(steps, held, left);
        }
        let owed = std::mem::take(&mut store.data_mut().meter_mut().owed);
        let left = left.saturating_sub(owed);
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

/// Sets the fuel from `left` to `new`, and the rest of the slice, reduced by the host's `work`.
fn set<G: Metered>(
    store: &mut StoreContextMut<'_, G>,
    left: u64,
    new: u64,
    work: u64,
) -> wasmtime::Result<()> {
    let meter = store.data_mut().meter_mut();
    let elapsed = if meter.has_waited() {
        // The guest gets a new slice, so fuel that it burnt before does not count.
        meter.slice.begin(left);
        meter.call.entered = meter.activity.number();
        Duration::ZERO
    } else {
        meter.activity.elapsed()
    };
    let fuel = meter.slice.go_on(left, new, work, elapsed)?;
    apply(store, fuel)
}

/// Sets the Store's fuel, and how much of it the guest may burn before it yields.
fn apply<G: Metered>(store: &mut StoreContextMut<'_, G>, fuel: Fuel) -> wasmtime::Result<()> {
    store.fuel_async_yield_interval(Some(fuel.interval))?;
    store.set_fuel(fuel.fuel)
}

#[cfg(test)]
mod tests {
    use wasmtime::{AsContextMut, Config, Engine};

    use super::*;

    struct Guest(Meter);

    impl Metered for Guest {
        fn meter(&self) -> &Meter {
            &self.0
        }

        fn meter_mut(&mut self) -> &mut Meter {
            &mut self.0
        }

        fn held(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_batch_shows_no_fuel_that_nothing_burnt() {
        let usage = Arc::new(Usage::default());
        let meter = Meter::new(&Limits::max(), usage.clone(), Arc::new(Activity::new()));
        let engine = Engine::new(Config::new().consume_fuel(true)).unwrap();
        let mut store = Store::new(&engine, Guest(meter));
        install(&mut store).unwrap();
        for messages in [1, 10, 1] {
            deliver(&mut store.as_context_mut(), messages).unwrap();
        }
        show(&store.as_context_mut());
        // The host's work for each message is all there was.
        assert!(usage.fuel_per_message.peak() <= 2 * CROSSING, "{}", usage.fuel_per_message.peak());
    }
}
