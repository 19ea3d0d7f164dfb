//! Publishes packets at intervals, as often as a request says. A packet is a JSON string.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod publisher {
    use std::{fmt::Debug, time::SystemTime};

    use wasip2::clocks::monotonic_clock;
    use weir_sdk::raw::{
        channel::{self, Message},
        events,
        requests::Options,
    };

    const PATIENT: Options = Options { timeout_ms: Some(60_000), parent: None };

    /// Answers when it published each, in nanoseconds of the wall clock.
    pub(super) fn serve() -> Result<(), String> {
        channel::serve("publisher@1", &["publish".to_owned()]).map_err(text)?;
        while let Some(message) = channel::receive() {
            let Message::Request(request) = message else { continue };
            let numbers = request.payload.as_chunks().0.iter().copied().map(u32::from_le_bytes);
            let Ok([count, bytes, interval_us]) = <[u32; 3]>::try_from(numbers.collect::<Vec<_>>()) else {
                return Err("a request has not three numbers".to_owned());
            };
            let times = publish(count, bytes, interval_us)?;
            channel::respond(request.id, Ok(times.as_flattened())).map_err(text)?;
        }
        Ok(())
    }

    fn publish(count: u32, bytes: u32, interval_us: u32) -> Result<Vec<[u8; 8]>, String> {
        let packet = format!("\"{}\"", "x".repeat(usize::try_from(bytes).map_err(text)?.saturating_sub(2)));
        let start = monotonic_clock::now();
        let mut times = Vec::new();
        for number in 1..=u64::from(count) {
            if interval_us > 0 {
                let at = start + number * u64::from(interval_us) * 1000;
                monotonic_clock::subscribe_instant(at).block();
            }
            let now = SystemTime::UNIX_EPOCH.elapsed().map_err(text)?;
            times.push(u64::try_from(now.as_nanos()).map_err(text)?.to_le_bytes());
            events::publish("packets", packet.as_bytes(), PATIENT).map_err(text)?;
        }
        Ok(times)
    }

    fn text(error: impl Debug) -> String {
        format!("{error:?}")
    }
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    match publisher::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            weir_sdk::raw::lifecycle::error(&reason);
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
