//! Puts what depends on one another in order, and finds where that goes round.

use std::collections::{BTreeMap, BTreeSet};

use super::ExtensionConfig;

/// What came of ordering.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    /// Everyone who is neither in a round nor depends on one: after those whom they depend on, and
    /// otherwise as they stood.
    pub(super) sorted: Vec<usize>,
    /// The rounds, each starting with its smallest number; none has a member in common with another.
    pub(super) cycles: Vec<Vec<usize>>,
}

/// Orders `0..dependencies.len()`, each of whom depends on those that its entry lists.
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

/// For each extension those that own a contract that it requires.
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

/// Walks from each of those that could not be ordered along what it depends on, until that repeats:
/// there is always a next one among them, since whoever has none would have been ordered.
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
            // Somebody has walked on from here already, and what that led to is reported.
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
