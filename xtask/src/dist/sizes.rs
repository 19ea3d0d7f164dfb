//! What each feature adds to `weir`, built for size, as a table.

use std::fs;

use anyhow::{Context, Result};

use super::{build, target::Target};

/// Features, each with those that it brings.
const FEATURES: [(&str, &str); 8] = [
    ("", ""),
    ("store", "store"),
    ("otlp", "otlp"),
    ("gateway", "gateway"),
    ("gateway-tls", "gateway-tls"),
    ("http", "http"),
    ("all of these", "gateway-tls,http,otlp,store"),
    ("compiler", "compiler"),
];

pub(super) fn print(target: &Target) -> Result<()> {
    target.prepare()?;
    println!("| feature | bytes | more |\n| --- | ---: | ---: |");
    let mut least = None;
    for (name, features) in FEATURES.iter().filter(|(name, _)| target.compiles || *name != "compiler") {
        let weir = build::weir(target, "device", &["--no-default-features", "--features", features])?;
        let size = fs::metadata(&weir).context("cannot look at `weir`")?.len();
        let more = size - *least.get_or_insert(size);
        println!(
            "| {} | {size} | {more} |",
            if name.is_empty() { "none".to_owned() } else { format!("`{name}`") }
        );
    }
    Ok(())
}
