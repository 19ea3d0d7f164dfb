//! Main as a process, under the names that Prometheus' own clients give.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use super::text::Text;

/// What the system does not tell is left out.
pub(super) fn add(text: &mut Text) {
    if let Ok(cpu) = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)) {
        let help = "Processor time of all threads of Main.";
        text.counter("process_cpu_seconds", help).sample(&[], cpu.as_secs_f64());
    }
    if let Some(resident) = resident() {
        text.gauge("process_resident_memory_bytes", "Memory of Main that is resident.").sample(&[], resident);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them reads the directory.
        text.gauge("process_open_fds", "Open file descriptors of Main.").sample(&[], open.count() - 1);
    }
}

fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
