//! How many extensions fit into the memory mappings that the kernel allows one process.
//!
//! Beyond that bound not even Main's heap can grow. The figures hold for idle extensions with one linear memory each.
//! The reserve is for Main, and for extensions that take more.

use std::{collections::BTreeSet, fs};

use weir_config::{Config, ExtensionConfig};

/// The kernel has too few memory mappings for the extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{extensions} extensions are configured, and only {fit} fit: each takes memory mappings, and \
     `vm.max_map_count` allows this process {allowed}; raise it with `sysctl -w vm.max_map_count={needed}`"
)]
pub struct TooFewMappings {
    /// Configured extensions.
    pub extensions: u64,
    /// Extensions that fit.
    pub fit: u64,
    /// Mappings allowed to this process.
    pub allowed: u64,
    /// Mappings that suffice.
    pub needed: u64,
}

/// Mappings of one running extension: its stack, memory and tables, with their guard pages.
const OF_AN_EXTENSION: u64 = 7;

/// Mappings of one component's code, for one stack size and kind of traces. Extensions of that component share them.
const OF_A_PROGRAM: u64 = 3;

/// Mappings for libraries, threads and the heap.
const RESERVE: u64 = 2_000;

/// Checks that the kernel allows enough memory mappings for these extensions.
///
/// # Errors
///
/// Fails if the extensions need more memory mappings than the kernel allows. Passes if the kernel does not say how many
/// that is.
pub fn check_mappings(config: &Config) -> Result<(), TooFewMappings> {
    check(&config.extensions, allowed())
}

/// Reads `vm.max_map_count`. Returns none if it cannot be read.
fn allowed() -> Option<u64> {
    fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

fn check(extensions: &[ExtensionConfig], allowed: Option<u64>) -> Result<(), TooFewMappings> {
    let programs: BTreeSet<_> = extensions
        .iter()
        .map(|extension| (&extension.component, extension.limits.stack, extension.traces))
        .collect();
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    match allowed {
        Some(allowed) => {
            let at_once = |it: &ExtensionConfig| it.serves_http.as_ref().map_or(1, |http| http.at_once);
            let instances =
                extensions.iter().map(|it| u64::from(it.instances) * u64::from(at_once(it))).sum();
            fits(instances, count(programs.len()), allowed)
        }
        None => Ok(()),
    }
}

fn fits(extensions: u64, programs: u64, allowed: u64) -> Result<(), TooFewMappings> {
    let taken =
        extensions.saturating_mul(OF_AN_EXTENSION).saturating_add(programs.saturating_mul(OF_A_PROGRAM));
    let free = allowed.saturating_sub(RESERVE);
    if taken <= free {
        return Ok(());
    }
    // How many fit, if as many of them share a program as now.
    let fit = u128::from(extensions) * u128::from(free) / u128::from(taken);
    let fit = u64::try_from(fit).unwrap_or(u64::MAX);
    Err(TooFewMappings { extensions, fit, allowed, needed: taken.saturating_add(RESERVE) })
}

#[cfg(test)]
mod tests {
    use weir_config::Traces;

    use super::*;

    #[test]
    fn at_the_kernels_default_some_nine_thousand_of_one_component_fit() {
        fits(9_075, 1, 65_530).unwrap();
        assert_eq!(
            fits(10_000, 1, 65_530).unwrap_err().to_string(),
            "10000 extensions are configured, and only 9075 fit: each takes memory mappings, and \
             `vm.max_map_count` allows this process 65530; raise it with `sysctl -w vm.max_map_count=72003`"
        );
    }

    #[test]
    fn what_a_refusal_asks_for_is_enough() {
        for (extensions, programs) in [(1, 1), (7, 7), (9_076, 9_076), (1_000_000, 1)] {
            let Err(TooFewMappings { needed, fit, .. }) = fits(extensions, programs, 2_006) else {
                panic!("{extensions} fit");
            };
            assert_eq!(fit, 0);
            fits(extensions, programs, needed).unwrap();
            fits(extensions, programs, needed - 1).unwrap_err();
        }
    }

    #[test]
    fn each_component_and_each_of_its_stacks_counts() {
        let extensions = |stack_of_last: u64, path: &dyn Fn(u64) -> String| -> Vec<ExtensionConfig> {
            let mut extensions: Vec<_> =
                (0..100).map(|n| ExtensionConfig::new(format!("e{n}").parse().unwrap(), path(n))).collect();
            extensions[99].limits.stack = stack_of_last;
            extensions
        };
        let needed = |extensions: &[ExtensionConfig]| match check(extensions, Some(0)) {
            Err(TooFewMappings { needed, .. }) => needed,
            other => panic!("{other:?}"),
        };
        assert_eq!(needed(&extensions(1 << 20, &|_| "a.wasm".to_owned())), 2_703);
        assert_eq!(needed(&extensions(2 << 20, &|_| "a.wasm".to_owned())), 2_706);
        assert_eq!(needed(&extensions(1 << 20, &|n| format!("{n}.wasm"))), 3_000);
        let mut with_lines = extensions(1 << 20, &|_| "a.wasm".to_owned());
        with_lines[99].traces = Traces::Lines;
        assert_eq!(needed(&with_lines), 2_706);
        check(&extensions(1 << 20, &|_| "a.wasm".to_owned()), None).unwrap();
        check(&[], Some(0)).unwrap();
    }
}
