//! What the Store of every guest holds, whatever its imports: its view of the machine, and its bounds.

use std::{fmt, sync::Arc, time::Instant};

use wasmtime::{
    Engine, Store,
    component::{Linker, ResourceTable, types::ComponentInstance},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use weir_config::{FixedLimits, Limits};
use weir_metrics::Usage;
use weir_schedule::Activity;

use super::{
    exports::Types,
    fit::GuestKind,
    http::HttpAccess,
    imports::{counted::CountedFiles, pollables::Timers},
    keyvalue::StoreAccess,
    memory::{MemoryLimiter, size},
    meter::{self, Meter, Metered},
    wasi::{Machine, Net},
};

/// A kind of guest: its Store's data, and its imports.
pub trait Guest: WasiView + Send + Sized + 'static {
    /// What runs it.
    const KIND: GuestKind;

    /// Defines all imports of this kind of guest.
    fn add_to_linker(linker: &mut Linker<Self>) -> wasmtime::Result<()>;

    /// Defines the functions of an interface that Weir does not have, if this kind of guest may have others answer them.
    /// An error says why not.
    fn link_import(
        _: &mut Linker<Self>,
        _: &Engine,
        _: &str,
        _: &ComponentInstance,
        _: &mut Types,
    ) -> Result<(), String> {
        Err(String::new())
    }

    fn sandbox(&self) -> &Sandbox;

    fn sandbox_mut(&mut self) -> &mut Sandbox;

    /// Returns the latest deadline of the guest's requests in hand, if it has requests and no jobs in hand.
    fn deadline_in_hand(&self) -> Option<Instant> {
        None
    }
}

impl<G: Guest> Metered for G {
    #[inline(always)]
    fn meter(&self) -> &Meter {
        &self.sandbox().meter
    }

    #[inline(always)]
    fn meter_mut(&mut self) -> &mut Meter {
        &mut self.sandbox_mut().meter
    }

    fn held(&self) -> u64 {
        self.sandbox().memory.held()
    }
}

/// One guest's bounds, and its view of the machine.
pub struct Sandbox {
    pub(super) meter: Meter,
    pub(super) memory: MemoryLimiter,
    /// What the guest may send by HTTP, if it imports that. Declared before `table` so that it is dropped first: a body
    /// that ends with the table must not look complete to its server.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "empty without the feature"))]
    pub(super) http: Option<Box<HttpAccess>>,
    pub(super) table: ResourceTable,
    pub(super) fixed: &'static FixedLimits,
    /// The most resources that it may hold.
    pub(super) resources: u64,
    /// The sockets that it has.
    pub(super) sockets: u64,
    /// What the guest is granted of the network.
    pub(super) net: Arc<Net>,
    /// Whether the guest's calls may block the thread that polls it.
    pub(super) may_block: bool,
    pub(super) counted: CountedFiles,
    pub(super) timers: Timers,
    /// The stores that the guest may open, if it is granted any.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "empty without the feature"))]
    pub(super) stores: Option<Box<StoreAccess>>,
    wasi: WasiCtx,
}

impl Sandbox {
    pub(super) fn new(
        limits: &Limits,
        machine: Machine,
        usage: &Arc<Usage>,
        activity: Arc<Activity>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(size(limits.resources));
        Self {
            meter: Meter::new(limits, usage.clone(), activity),
            memory: MemoryLimiter::new(limits, usage.clone()),
            table,
            fixed: limits.fixed(),
            resources: limits.resources,
            sockets: 0,
            net: machine.net,
            may_block: false,
            counted: machine.counted,
            timers: Timers::default(),
            http: machine.http,
            stores: machine.stores,
            wasi: machine.wasi,
        }
    }

    /// Returns WASI's part of the Store, and charges for the call: it is asked for when the guest calls WASI.
    pub(super) fn wasi(&mut self) -> WasiCtxView<'_> {
        self.meter.enter_wasi();
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

/// Makes the Store of one guest, with its limits in force.
pub(super) fn new_store<G: Guest>(engine: &Engine, guest: G, limits: &Limits) -> wasmtime::Result<Store<G>> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.sandbox_mut().memory);
    meter::install(&mut store)?;
    store.set_hostcall_fuel(size(limits.transfer()));
    store.set_max_component_handles(size(limits.handles()));
    Ok(store)
}
