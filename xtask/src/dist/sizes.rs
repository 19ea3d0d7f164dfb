//! What each feature adds to `weir`, built for size, as a table: to the program, and to the memory of a Main that has
//! no extensions.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{build, target::Target};
use crate::{
    files,
    run::{Process, pause, until},
};

/// The names of the rows, and the features that `weir` is built with for each.
const FEATURES: [(&str, &str); 10] = [
    ("", ""),
    ("tools", "tools"),
    ("store", "store"),
    ("otlp", "otlp"),
    ("packages", "packages"),
    ("gateway", "gateway"),
    ("gateway-tls", "gateway-tls"),
    ("http", "http"),
    ("all of these", "gateway-tls,http,otlp,packages,store,tools"),
    ("compiler", "compiler"),
];

/// Time for Main to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time after which Main has nothing left to do from its start.
const SETTLING: Duration = Duration::from_secs(1);

pub(super) fn print(target: &Target) -> Result<()> {
    target.prepare()?;
    println!("| feature | bytes | more | private memory, KiB |\n| --- | ---: | ---: | ---: |");
    let mut least = None;
    for (name, features) in FEATURES.iter().filter(|(name, _)| target.compiles || *name != "compiler") {
        let features = ["--no-default-features", "--features", features];
        let weir = build::programs(target, "device", &features, Vec::new(), &[build::WEIR])?;
        let weir = weir.first().context("nothing was built")?;
        let size = fs::metadata(weir).context("cannot look at `weir`")?.len();
        let more = size - *least.get_or_insert(size);
        let memory = match target.emulator {
            None => memory(weir)?.to_string(),
            Some(_) => String::new(),
        };
        let name = if name.is_empty() { "none".to_owned() } else { format!("`{name}`") };
        println!("| {name} | {size} | {more} | {memory} |");
    }
    Ok(())
}

/// The private memory of a Main without extensions, in KiB.
fn memory(weir: &Path) -> Result<u64> {
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    // If another process ran the same file, its pages would be shared and not count.
    let own = directory.path().join("weir");
    files::copy(weir, &own)?;
    fs::File::open(&own)?.sync_all()?;
    let (file, socket) = (directory.path().join("weir.toml"), directory.path().join("weir.sock"));
    files::write(&file, "[main]\n")?;
    let mut command = Command::new(&own);
    // The variable is set as in `packaging/systemd/weir.service`.
    command.arg("run").arg(&file).arg("--socket").arg(&socket).env("MALLOC_ARENA_MAX", "1");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut main = Process(command.spawn().context("cannot start `weir`")?);
    let up = until(PATIENCE, Duration::from_millis(10), || {
        ensure!(main.0.try_wait()?.is_none(), "`weir run` has ended");
        Ok(socket.exists().then_some(()))
    })?;
    up.context("`weir run` does not serve its control socket")?;
    pause(SETTLING);
    let rollup = files::read(format!("/proc/{}/smaps_rollup", main.0.id()))?;
    let of = |key: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let private = of("Private_Clean:").zip(of("Private_Dirty:"));
    private.map(|(clean, dirty)| clean + dirty).context("the kernel does not say what memory it has")
}
