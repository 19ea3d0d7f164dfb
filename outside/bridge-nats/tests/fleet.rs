//! Whole fleets: real Mains, bridges and a real NATS server, each a process, which the tests kill and part.
//!
//! `cargo xtask test --full nats` runs them and sets what they need:
//!
//! | variable | is |
//! | --- | --- |
//! | `WEIR_COMMAND` | the command `weir` |
//! | `WEIR_NATS_SERVER` | the command `nats-server` |
//! | `WEIR_PLUGINS` | a folder with the components of `plugins/` |
//! | `WEIR_NATS_COMMAND` | another `weir-nats` than the one of these tests |
//! | `WEIR_FLEET_CALLS`, `WEIR_FLEET_JOBS`, `WEIR_FLEET_KILLS`, `WEIR_FLEET_NODES` | how much is done, if not what is moderate |
//! | `WEIR_FLEET_SEED` | the seed of a run that is to come again |

#[cfg(test)]
mod fleet {
    mod away;
    mod client;
    mod contracts;
    mod events;
    mod jobs;
    mod kills;
    mod life;
    mod node;
    mod parted;
    mod process;
    mod proofs;
    mod proxy;
    mod server;
    mod storms;
    mod strangers;
}
