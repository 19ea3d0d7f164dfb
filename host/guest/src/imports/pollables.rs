//! Bounds how many pollables a guest may hold, and how many one `poll` may list. Also makes the guest's timers, each of
//! which counts once.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceTable, ResourceType},
};
use wasmtime_wasi::{
    clocks::WasiClocksView,
    p2::{
        DynPollable, Pollable,
        bindings::{clocks::monotonic_clock, io::poll},
        subscribe,
    },
};
use weir_config::{LimitHit, LimitKey};

use super::{Async, VERSION, meter};
use crate::{
    abi::Handed,
    exit::OverLimit,
    sandbox::{Guest, Sandbox},
};

/// A guest's timers. Each has a place in the table for its time and one for its pollable. The limit counts only the
/// pollables. A place for a time is used again, so there are as many as there were timers at once.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// The places of times, by the places of their pollables.
    shown: BTreeMap<u32, u32>,
    /// The places of times that have no pollable now.
    spare: Vec<u32>,
}

/// A time that a pollable waits for.
enum Timer {
    Past { has_yielded: bool },
    Due(Instant),
    Never,
}

impl Timer {
    fn after(wait: Duration) -> Self {
        match Instant::now().checked_add(wait) {
            _ if wait.is_zero() => Self::Past { has_yielded: false },
            Some(due) => Self::Due(due),
            None => Self::Never,
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        match self {
            Self::Past { has_yielded: true } => {}
            Self::Past { has_yielded } => {
                // Yields once. Otherwise a guest that looks at its sockets without waiting would never let the runtime
                // look at them.
                *has_yielded = true;
                tokio::task::yield_now().await;
            }
            Self::Due(due) => tokio::time::sleep_until(*due).await,
            Self::Never => std::future::pending().await,
        }
    }
}

/// Replaces WASI's functions for pollables and timers.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    let mut io = linker.instance(&format!("wasi:io/poll@{VERSION}"))?;
    io.resource("pollable", ResourceType::host::<DynPollable>(), |mut store, pollable| {
        let sandbox = store.data_mut().sandbox_mut();
        sandbox.meter.enter_wasi();
        poll::HostPollable::drop(&mut sandbox.table, Resource::new_own(pollable))?;
        sandbox.timers.spare.extend(sandbox.timers.shown.remove(&pollable));
        Ok(())
    })?;
    io.func_wrap_async(
        "poll",
        |mut store: StoreContextMut<'_, G>,
         (pollables,): (Handed<Vec<Resource<DynPollable>>>,)|
         -> Async<'_, Vec<u32>> {
            Box::new(async move {
                let used = match &pollables {
                    Handed::Whole(pollables) => pollables.len() as u64,
                    Handed::TooLarge(number) => *number,
                };
                let allowed = store.data().sandbox().resources;
                let pollables = match pollables {
                    Handed::Whole(pollables) if used <= allowed => pollables,
                    // The list is bounded too, because it can name one pollable again and again.
                    _ => return Err(OverLimit(LimitHit::new(LimitKey::RESOURCES, used, allowed)).into()),
                };
                meter::charge_each(&mut store, pollables.len())?;
                Ok((poll::Host::poll(&mut store.data_mut().sandbox_mut().table, pollables).await?,))
            })
        },
    )?;
    let mut clock = linker.instance(&format!("wasi:clocks/monotonic-clock@{VERSION}"))?;
    clock.func_wrap("subscribe-duration", |mut store: StoreContextMut<'_, G>, (nanoseconds,): (u64,)| {
        Ok((set(store.data_mut().sandbox_mut(), nanoseconds)?,))
    })?;
    clock.func_wrap("subscribe-instant", |mut store: StoreContextMut<'_, G>, (instant,): (u64,)| {
        let guest = store.data_mut();
        let now = monotonic_clock::Host::now(&mut guest.clocks())?;
        Ok((set(guest.sandbox_mut(), instant.saturating_sub(now))?,))
    })
}

/// Makes a pollable that is ready after this time.
fn set(sandbox: &mut Sandbox, nanoseconds: u64) -> wasmtime::Result<Resource<DynPollable>> {
    sandbox.meter.enter_wasi();
    let Sandbox { table, timers, .. } = sandbox;
    let timer = Timer::after(Duration::from_nanos(nanoseconds));
    let place = match timers.spare.pop() {
        Some(place) => {
            *table.get_mut(&Resource::new_borrow(place))? = timer;
            place
        }
        None => push_uncounted(table, timer)?,
    };
    let pollable = subscribe(table, Resource::<Timer>::new_borrow(place));
    match &pollable {
        Ok(pollable) => drop(timers.shown.insert(pollable.rep(), place)),
        Err(_) => timers.spare.push(place),
    }
    pollable
}

/// Adds a value to the table that the limit on resources does not count, because it stays as long as the guest. Returns
/// its place.
pub(super) fn push_uncounted<T: Send + 'static>(
    table: &mut ResourceTable,
    value: T,
) -> wasmtime::Result<u32> {
    table.set_max_capacity(table.max_capacity().saturating_add(1));
    Ok(table.push(value)?.rep())
}
