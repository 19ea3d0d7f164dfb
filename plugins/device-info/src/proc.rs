//! The kernel's files, as proc(5) describes them.
//!
//! Each parser takes the text of a file, and fails with the name of a missing value. It ignores all other
//! lines and columns.

use weir_contracts::device_info::{Cpu, Load, Memory, Uptime};

/// Parses `/proc/meminfo`. Only the total and the free memory are always there.
pub(crate) fn memory(text: &str) -> Result<Memory, &'static str> {
    let kib = |key| field(text, key)?.strip_suffix("kB")?.trim_end().parse().ok();
    let total_kib = kib("MemTotal").ok_or("`MemTotal`")?;
    let free_kib: u64 = kib("MemFree").ok_or("`MemFree`")?;
    let buffers_kib = kib("Buffers").unwrap_or(0);
    let cached_kib = kib("Cached").unwrap_or(0);
    // Kernels before 3.14 leave this estimate to their users.
    let estimate = || free_kib.saturating_add(buffers_kib).saturating_add(cached_kib).min(total_kib);
    Ok(Memory {
        total_kib,
        free_kib,
        available_kib: kib("MemAvailable").unwrap_or_else(estimate),
        buffers_kib,
        cached_kib,
        swap_total_kib: kib("SwapTotal").unwrap_or(0),
        swap_free_kib: kib("SwapFree").unwrap_or(0),
    })
}

pub(crate) fn uptime(text: &str) -> Result<Uptime, &'static str> {
    let mut words = text.split_whitespace();
    Ok(Uptime {
        seconds: number(words.next()).ok_or("the seconds since the start")?,
        idle_seconds: number(words.next()).ok_or("the idle seconds")?,
    })
}

pub(crate) fn load(text: &str) -> Result<Load, &'static str> {
    let mut words = text.split_whitespace();
    Ok(Load {
        one: number(words.next()).ok_or("the load of one minute")?,
        five: number(words.next()).ok_or("the load of five minutes")?,
        fifteen: number(words.next()).ok_or("the load of fifteen minutes")?,
    })
}

/// Parses `/proc/cpuinfo`, which every architecture writes in its own way.
pub(crate) fn cpu(text: &str) -> Result<Cpu, &'static str> {
    let cores = text.lines().filter(|line| begins_core(line)).count();
    if cores == 0 {
        return Err("any `processor`");
    }
    // The keys are those of x86 and newer ARM kernels, MIPS, PowerPC, RISC-V, older ARM kernels, and boards.
    let model = ["model name", "cpu model", "cpu", "uarch", "Processor", "Model", "Hardware"]
        .into_iter()
        .find_map(|key| field(text, key).map(str::to_owned))
        .or_else(|| arm_model(text))
        .ok_or("the model")?;
    Ok(Cpu { model, cores: u32::try_from(cores).unwrap_or(u32::MAX) })
}

/// The model on 64-bit ARM, where the kernel gives numbers instead of a name: `0x41 0xd08` is a Cortex-A72.
fn arm_model(text: &str) -> Option<String> {
    let (implementer, part) = (field(text, "CPU implementer")?, field(text, "CPU part")?);
    Some(format!("ARM implementer {implementer} part {part}"))
}

/// Whether a line begins the entry of a core: `processor : 0`, or on s390 `processor 0: version = …`. On older ARM
/// kernels `Processor` is the model, and begins none.
fn begins_core(line: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    line.strip_prefix("processor").and_then(|rest| rest.split_once(':')).is_some_and(|(before, after)| {
        match before.trim() {
            "" => is_number(after.trim()),
            number => is_number(number),
        }
    })
}

/// The text after `key` and a colon, in the first line that has some.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim))
        .find(|value| !value.is_empty())
}

/// A number of seconds or tasks. `None` if it is infinite, which JSON cannot write, or negative.
fn number(word: Option<&str>) -> Option<f64> {
    word?.parse().ok().filter(|number: &f64| number.is_finite() && !number.is_sign_negative())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_old_kernel_leaves_the_available_memory_to_be_estimated() {
        let text = "MemTotal:  1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 300 kB\nSwapCached: 9 kB\n";
        let memory = memory(text).unwrap();
        assert_eq!((memory.available_kib, memory.cached_kib, memory.swap_total_kib), (420, 300, 0));
    }

    #[test]
    fn memory_without_a_total_or_with_one_that_is_no_number_is_refused() {
        for text in [
            "",
            "\0",
            "MemTotal",
            "MemTotal:",
            "MemTotal: kB",
            "MemTotal: -1 kB\nMemFree: 1 kB",
            "MemTotal: 18446744073709551616 kB\nMemFree: 1 kB",
            "MemTotalX: 1 kB\nMemFree: 1 kB",
            "MemTotal: 1 MB\nMemFree: 1 kB",
        ] {
            assert_eq!(memory(text), Err("`MemTotal`"), "{text:?}");
        }
        assert_eq!(memory("MemTotal: 1 kB\nMemFree: ? kB"), Err("`MemFree`"));
    }

    #[test]
    fn figures_that_json_cannot_say_are_refused() {
        for text in ["", "x 1", "inf 1", "NaN 1", "1", "1 -1", "-0 1", "1e999 1"] {
            assert!(uptime(text).is_err(), "{text:?}");
            assert!(load(text).is_err(), "{text:?}");
        }
        assert_eq!(load("0.00 1.5 20 1/100 9\n"), Ok(Load { one: 0.0, five: 1.5, fifteen: 20.0 }));
    }

    #[test]
    fn the_model_is_found_on_every_architecture() {
        for (text, model, cores) in [
            ("processor\t: 0\nmodel name\t: A: B\n\nprocessor\t: 1\nmodel name\t: A: B\n", "A: B", 2),
            (
                "Processor\t: ARMv7 rev 1\nprocessor\t: 0\nprocessor\t: 1\nHardware\t: Board\n",
                "ARMv7 rev 1",
                2,
            ),
            ("processor: 0\nCPU implementer: 0x41\nCPU part: 0xd08\n", "ARM implementer 0x41 part 0xd08", 1),
            ("processor: 0\nCPU part: 0xd08\nCPU implementer: 0x41\nModel : Pi 4\n", "Pi 4", 1),
            ("processor : 0\ncpu\t: POWER9, altivec supported\n", "POWER9, altivec supported", 1),
            ("system type: x\nprocessor : 0\ncpu model : MIPS 24Kc\n", "MIPS 24Kc", 1),
            ("processor 0: version = FF\nprocessor 1: version = FF\nModel: z\n", "z", 2),
            ("processor: 0\nmodel name:\nmodel name: late\n", "late", 1),
        ] {
            assert_eq!(cpu(text), Ok(Cpu { model: model.into(), cores }), "{text:?}");
        }
    }

    #[test]
    fn a_file_without_processors_or_model_is_refused() {
        assert_eq!(cpu("model name: x\nprocessor: one\n"), Err("any `processor`"));
        assert_eq!(cpu("processor: 0\n"), Err("the model"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "(MemTotal|MemFree|processor|model name|[ :\t\n0-9kB.]|\\PC){0,60}") {
            let _outcomes = (memory(&text), uptime(&text), load(&text), cpu(&text));
        }
    }
}
