//! What the process has.

/// Bytes of memory that this process has to itself.
pub(crate) fn private_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let of = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    (of("Private_Clean:") + of("Private_Dirty:")) * 1024
}

pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
