//! Checks orders as `orders` does: a handler of the SDK, which reads and writes the same JSON.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod wasm {
    use serde::{Deserialize, Serialize};
    use weir_sdk::{Context, Error, Extension, Shape};

    weir_sdk::contract! {
        const ORDERS = "orders-sdk@1";
        const CHECK: fn(Check) -> Order = "check";
    }

    #[derive(Serialize, Deserialize, Shape)]
    #[serde(deny_unknown_fields)]
    struct Check {
        order: Order,
    }

    #[derive(Serialize, Deserialize, Shape)]
    #[serde(deny_unknown_fields)]
    struct Order {
        number: u32,
        customer: String,
        amount: f64,
        paid: bool,
        items: Vec<String>,
    }

    weir_sdk::manifest! { id: "orders-sdk", fulfills: &[ORDERS] }

    pub(super) fn extension() -> Extension<()> {
        Extension::new(MANIFEST, ()).on(CHECK, async |(): &(), _: &Context, Check { order }| {
            Ok::<_, Error>(Order { paid: order.amount <= 0.0, ..order })
        })
    }
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    wasm::extension().run()
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
