//! How many extensions the kernel lets one process have room for.

use std::fs;

use super::StartError;

/// Memory mappings of one running extension: its stack, its memories and tables, with their guards.
const OF_AN_EXTENSION: u64 = 7;

/// Left for all else: libraries, threads, the heap, and the code of components.
const OF_MAIN: u64 = 2_000;

/// Mappings that this process may have: `vm.max_map_count`. None where there is no such bound to read.
pub(super) fn allowed() -> Option<u64> {
    fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

/// Refuses more extensions than fit: beyond that bound it is the heap of Main that cannot grow.
pub(super) fn check(extensions: usize, allowed: Option<u64>) -> Result<(), StartError> {
    let Some(allowed) = allowed else {
        return Ok(());
    };
    let extensions = u64::try_from(extensions).unwrap_or(u64::MAX);
    let needed = extensions.saturating_mul(OF_AN_EXTENSION).saturating_add(OF_MAIN);
    if extensions == 0 || needed <= allowed {
        return Ok(());
    }
    let fit = allowed.saturating_sub(OF_MAIN) / OF_AN_EXTENSION;
    Err(StartError::Mappings { extensions, fit, allowed, needed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_kernels_default_some_nine_thousand_fit() {
        check(9_075, Some(65_530)).unwrap();
        assert_eq!(
            check(9_076, Some(65_530)).unwrap_err().to_string(),
            "9076 extensions are configured, and only 9075 fit: each takes memory mappings, of which \
             `vm.max_map_count` allows this process 65530; raise it with `sysctl -w vm.max_map_count=65532`"
        );
    }

    #[test]
    fn what_a_refusal_asks_for_is_enough() {
        for extensions in [1, 7, 9_076, 1_000_000, usize::MAX] {
            let Err(StartError::Mappings { needed, fit, .. }) = check(extensions, Some(2_006)) else {
                panic!("{extensions} fit");
            };
            assert_eq!(fit, 0);
            check(extensions, Some(needed)).unwrap();
        }
    }

    #[test]
    fn without_a_bound_or_without_extensions_nothing_is_refused() {
        check(usize::MAX, None).unwrap();
        check(0, Some(0)).unwrap();
    }
}
