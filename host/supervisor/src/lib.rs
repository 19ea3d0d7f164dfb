//! The lifecycles of extensions: start order, stops, restarts, reloads, failure records.
//!
//! Owns the roster with the state of every extension. Knows neither the content of messages nor of Stores.
//! `docs/internals/extensions.md` tells the life of an extension.

mod events;
mod mappings;
mod roster;
mod supervisor;

pub use self::{
    events::{KEPT_EVENTS, MainEvent, MainEvents, UntilEnded},
    mappings::{TooFewMappings, check_mappings},
    roster::{
        HistoryEntry, HistoryEvent, Roster, Unit, Version, configure_traces, configure_traffic, lane_of,
    },
    supervisor::{
        Change, ControlError, Holds, NotReloaded, Order, OrderReplyTo, Reconfigure, ReloadReport, RollBack,
        Supervisor, SupervisorParts, WantedConfig, found, needs_restart, refusal, stages,
    },
};
