//! An extension that ends at once. With the variable `STAY` it stays, so that its program is kept for others.

#[cfg(target_family = "wasm")]
fn main() {
    const HOUR: u64 = 3_600_000_000_000;

    if std::env::var_os("STAY").is_some() {
        weir_sdk::raw::lifecycle::ready();
        loop {
            wasip2::clocks::monotonic_clock::subscribe_duration(HOUR).block();
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn main() {}
