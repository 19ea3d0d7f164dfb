//! Sends, receives and dies at random, while its test keeps a ledger of everything.
//!
//! Its settings, in `wasi:config`:
//!
//! | key | meaning |
//! | --- | --- |
//! | `window` | it sends, with this many requests under way; 0: it waits for each |
//! | `receiver` | it receives, as the receiver of that id |
//! | `listener` | it subscribes |

mod ledger;
mod receiver;
mod sender;

use std::{hint::black_box, process::ExitCode};

use test_guests::{
    churn::Deed,
    words::{count, setting, text},
};
use weir_sdk::raw::events;

use self::ledger::Ledger;

fn main() -> ExitCode {
    test_guests::ended(run())
}

fn run() -> Result<(), String> {
    let (ledger, begun) = Ledger::begin()?;
    if begun.dies {
        std::process::abort();
    }
    if setting("listener").is_some() {
        events::subscribe(test_guests::churn::TOPIC).map_err(text)?;
    }
    match setting("window") {
        Some(window) => sender::run(&ledger, &begun, count(&window)?),
        None => receiver::run(&ledger, &begun, setting("receiver").as_deref()),
    }
}

fn end(ledger: &Ledger, deed: Deed) {
    match deed {
        Deed::Answer => {}
        Deed::Trap => std::process::abort(),
        Deed::Spin => loop {
            black_box(());
        },
        Deed::Hold => ledger.hold(true),
        Deed::Fail => std::process::exit(1),
        Deed::Finish => std::process::exit(0),
    }
}
