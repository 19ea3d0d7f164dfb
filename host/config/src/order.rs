//! Sorts by dependencies and finds cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::ExtensionConfig;

#[derive(Debug, PartialEq)]
pub(super) struct Order {
    /// Items that are neither in a cycle nor depend on one: each after its dependencies, otherwise in the given order.
    pub(super) sorted: Vec<usize>,
    /// Disjoint cycles, each from its smallest number.
    pub(super) cycles: Vec<Vec<usize>>,
}

/// Sorts `0..dependencies.len()`. Each item depends on the items in its entry.
pub(super) fn order(dependencies: &[Vec<usize>]) -> Order {
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut dependents: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, needed) in dependencies.iter().enumerate() {
        for needed in needed {
            dependents.entry(*needed).or_default().push(index);
        }
    }
    let mut ready: BTreeSet<usize> =
        (0..missing.len()).filter(|index| missing.get(*index) == Some(&0)).collect();
    let mut sorted = Vec::with_capacity(missing.len());
    while let Some(index) = ready.pop_first() {
        sorted.push(index);
        for dependent in dependents.get(&index).into_iter().flatten() {
            if let Some(left) = missing.get_mut(*dependent) {
                *left -= 1;
                if *left == 0 {
                    ready.insert(*dependent);
                }
            }
        }
    }
    let done: BTreeSet<usize> = sorted.iter().copied().collect();
    let stuck: BTreeSet<usize> = (0..missing.len()).filter(|index| !done.contains(index)).collect();
    Order { sorted, cycles: cycles(dependencies, stuck) }
}

/// For each extension, the indices of those that fulfill a contract that it requires.
pub(super) fn dependencies(extensions: &[ExtensionConfig]) -> Vec<Vec<usize>> {
    let owners: BTreeMap<_, usize> = extensions
        .iter()
        .enumerate()
        .flat_map(|(index, extension)| extension.fulfills.iter().map(move |contract| (contract, index)))
        .collect();
    let needed = |extension: &ExtensionConfig| {
        let needed: BTreeSet<usize> =
            extension.requires.iter().filter_map(|contract| owners.get(contract).copied()).collect();
        needed.into_iter().collect()
    };
    extensions.iter().map(needed).collect()
}

/// Finds cycles: walks from each unsorted item along its dependencies until one repeats. Every unsorted item has an
/// unsorted dependency, or it would have been sorted.
fn cycles(dependencies: &[Vec<usize>], mut stuck: BTreeSet<usize>) -> Vec<Vec<usize>> {
    let stays = stuck.clone();
    let mut cycles = Vec::new();
    while let Some(start) = stuck.pop_first() {
        let mut walk = vec![start];
        let mut at = BTreeMap::from([(start, 0)]);
        let mut current = start;
        while let Some(next) =
            dependencies.get(current).and_then(|all| all.iter().find(|next| stays.contains(next)))
        {
            if let Some(first) = at.get(next) {
                let mut cycle = walk.split_off(*first);
                let smallest =
                    cycle.iter().enumerate().min_by_key(|(_, index)| **index).map_or(0, |(at, _)| at);
                cycle.rotate_left(smallest);
                cycles.push(cycle);
                break;
            }
            // An earlier walk has passed this item, and its cycle is reported.
            if !stuck.remove(next) {
                break;
            }
            at.insert(*next, walk.len());
            walk.push(*next);
            current = *next;
        }
    }
    cycles
}
