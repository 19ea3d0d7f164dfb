//! Has another component check orders: by values as they are, and by JSON.

#![cfg_attr(target_family = "wasm", expect(unsafe_code, reason = "the generated bindings"))]

#[cfg(target_family = "wasm")]
mod wasm {
    use self::{
        bench::orders::{orders, orders_by_text},
        exports::bench::orders::shop::Guest,
    };

    wit_bindgen::generate!({ path: "orders.wit", world: "shop-service" });

    struct Shop;

    export!(Shop);

    macro_rules! checked {
        ($by:ident, $times:expr) => {{
            let items = ["a lamp", "two chairs"].map(str::to_owned).into();
            let customer = "Ada Lovelace".to_owned();
            let order = $by::Order { number: 4711, customer, amount: 99.5, paid: true, items };
            let paid = (0..$times).filter(|_| $by::check(&order).paid);
            u32::try_from(paid.count()).unwrap_or(u32::MAX)
        }};
    }

    impl Guest for Shop {
        fn check(times: u32) -> u32 {
            checked!(orders, times)
        }

        fn check_by_text(times: u32) -> u32 {
            checked!(orders_by_text, times)
        }
    }
}

fn main() {}
