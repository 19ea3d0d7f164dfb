//! Checks orders: an exported function that knows nothing of Weir.

#![cfg_attr(target_family = "wasm", expect(unsafe_code, reason = "the generated bindings"))]

#[cfg(target_family = "wasm")]
mod wasm {
    use self::exports::bench::orders::orders::{Guest, Order};

    wit_bindgen::generate!({ path: "orders.wit", world: "orders-service" });

    struct Orders;

    export!(Orders);

    impl Guest for Orders {
        fn check(order: Order) -> Order {
            Order { paid: order.amount <= 0.0, ..order }
        }
    }
}

fn main() {}
