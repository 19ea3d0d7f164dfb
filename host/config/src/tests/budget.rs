//! The sum of limits against the memory budget.

use super::*;
use crate::{ExtensionConfig, Limits, MainConfig};

#[test]
fn the_example_of_a_device_fits_into_its_budget() {
    let text = "
        main.memory-budget = '48 MiB'
        [limits.small]
        inherits = 'min'
        memory = '4 MiB'
        [[extension]]
        id = 'storage'
        path = 'storage.wasm'
        [[extension]]
        id = 'telemetry'
        path = 'telemetry.wasm'
        class = 'small'
        limits.memory = '8 MiB'
        [[extension]]
        id = 'uploader'
        path = 'uploader.wasm'
    ";
    let config = parse(text).unwrap();
    let sum: u64 = config.extensions.iter().map(ExtensionConfig::memory_sum).sum();
    assert_eq!(sum, 47 << 20);
    parse(&text.replace("48 MiB", "47 MiB")).unwrap();
    let refused = parse(&text.replace("48 MiB", "49283071")).unwrap_err();
    let message = refused.iter().next().unwrap().message();
    assert!(message.contains("is 49283071 B, but") && message.contains("come to 49283072 B:"), "{message}");
}

#[test]
fn of_many_extensions_the_twenty_largest_are_shown() {
    let main = MainConfig { memory_budget: Some(64 << 20), ..MainConfig::default() };
    let extensions = (0..23).map(|number: u64| {
        let mut extension = ExtensionConfig::new(format!("e{number}").parse().unwrap(), "a.wasm");
        extension.limits = Limits::min();
        extension.limits.memory += number << 20;
        // Extensions without autostart count, too.
        extension.autostart = number.is_multiple_of(2);
        extension
    });
    let mut config = Config::new(main, extensions.collect());
    assert_golden("rust-memory-budget", &config.check().unwrap_err().to_string());

    config.main.memory_budget = None;
    config.check().unwrap();
}
