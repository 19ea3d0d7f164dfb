//! The order of starts, stops and changes: an extension starts after certain others, stops before them, and changes after
//! them.

use std::{collections::HashMap, sync::Arc};

use weir_config::ExtensionConfig;
use weir_names::{ContractName, ExtensionId};

/// Returns, for each extension, the extensions that it starts after: all that it requires, and those that it wants. A
/// want does not count if the wanted extension, directly or through others, requires or wants the wanting one in turn.
pub(super) fn after(requires: &[Vec<usize>], wants: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let all: Vec<Vec<usize>> =
        requires.iter().zip(wants).map(|(required, wanted)| [&required[..], wanted].concat()).collect();
    let circles = circles(&all);
    let circle = |index: usize| circles.get(index);
    let of_one = |(index, (required, wanted)): (usize, (&Vec<usize>, &Vec<usize>))| {
        let ordered = wanted.iter().copied().filter(|wanted| circle(*wanted) != circle(index));
        required.iter().copied().chain(ordered).collect()
    };
    requires.iter().zip(wants).enumerate().map(of_one).collect()
}

/// Returns the stage of each extension, from 1, in a change from the running extensions to the configured ones. An
/// extension changes in a later stage than those that it requires or wants. One that gives up a contract which nobody
/// takes, or that is removed, changes after those that call that contract now.
///
/// Extensions that lead to each other share a stage, as do instances of one extension, and the extensions between which
/// a contract moves.
#[must_use]
pub fn stages(
    running: &[Arc<ExtensionConfig>],
    configured: &[Arc<ExtensionConfig>],
) -> HashMap<ExtensionId, usize> {
    let mut indices: HashMap<&ExtensionId, usize> = HashMap::new();
    for extension in configured.iter().chain(running) {
        let next = indices.len();
        indices.entry(&extension.id).or_insert(next);
    }
    let index = |id: &ExtensionId| indices.get(id).copied();
    let owners = |extensions: &[Arc<ExtensionConfig>]| -> HashMap<ContractName, usize> {
        let originals = extensions.iter().filter(|extension| extension.copy_of.is_none());
        let owned = |extension: &Arc<ExtensionConfig>| {
            let contracts = extension.fulfills.clone().into_iter();
            contracts.filter_map(|contract| Some((contract, index(&extension.id)?))).collect::<Vec<_>>()
        };
        originals.flat_map(owned).collect()
    };
    let (before, after) = (owners(running), owners(configured));
    let mut edges = vec![Vec::new(); indices.len()];
    let mut lead = |from: Option<usize>, to: Option<usize>| {
        if let (Some(from), Some(to)) = (from, to) {
            edges.get_mut(from).into_iter().for_each(|edges| edges.push(to));
        }
    };
    for extension in configured {
        for contract in extension.requires.iter().chain(extension.wanted()) {
            lead(index(&extension.id), after.get(contract).copied());
        }
    }
    for extension in configured.iter().chain(running) {
        let original = extension.copy_of.as_ref().and_then(index);
        lead(original, index(&extension.id));
        lead(index(&extension.id), original);
    }
    for (contract, giver) in &before {
        match after.get(contract) {
            Some(taker) => {
                lead(Some(*giver), Some(*taker));
                lead(Some(*taker), Some(*giver));
            }
            None => {
                let callers = running.iter().filter(|extension| extension.may_call(contract));
                callers.for_each(|caller| lead(Some(*giver), index(&caller.id)));
            }
        }
    }
    let levels = levels(&edges);
    let of =
        |(id, index): (&ExtensionId, usize)| (id.clone(), levels.get(index).map_or(1, |level| level + 1));
    indices.into_iter().map(of).collect()
}

/// Returns the level of each item, from 0: one more than the highest of those that it leads to, but for items of its
/// circle, which have its level.
fn levels(edges: &[Vec<usize>]) -> Vec<usize> {
    let circles = circles(edges);
    let circle = |index: usize| circles.get(index).copied().unwrap_or(index);
    let mut between = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate() {
        let others = to.iter().map(|to| circle(*to)).filter(|to| *to != circle(from));
        between
            .get_mut(circle(from))
            .into_iter()
            .for_each(|edges: &mut Vec<usize>| edges.extend(others.clone()));
    }
    let mut levels = vec![0; edges.len()];
    // Without circles, all that a circle leads to is finished before it.
    depth_first(&between, 0..edges.len(), |_, index| {
        let below = between.get(index).into_iter().flatten().filter_map(|to| levels.get(*to)).max();
        let level = below.map_or(0, |level| level + 1);
        levels.get_mut(index).into_iter().for_each(|it| *it = level);
    });
    (0..edges.len()).filter_map(|index| levels.get(circle(index)).copied()).collect()
}

/// Returns the circle of each item. Two items have the same circle if each leads to the other.
fn circles(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(edges.len());
    depth_first(edges, 0..edges.len(), |_, index| finished.push(index));
    let mut back = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate() {
        for to in to {
            back.get_mut(*to).into_iter().for_each(|back| back.push(from));
        }
    }
    // Kosaraju's algorithm: against the edges, the item that finished last reaches only items of its own circle.
    let mut circles: Vec<usize> = (0..edges.len()).collect();
    depth_first(&back, finished.into_iter().rev(), |start, index| {
        circles.get_mut(index).into_iter().for_each(|circle| *circle = start);
    });
    circles
}

/// Visits each item once. Calls `finish` with the start of the walk and the item, after the items that it leads to.
fn depth_first(
    edges: &[Vec<usize>],
    starts: impl Iterator<Item = usize>,
    mut finish: impl FnMut(usize, usize),
) {
    let mut seen = vec![false; edges.len()];
    let mut is_new = |index: usize| seen.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true));
    for start in starts {
        if !is_new(start) {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((index, next)) = path.last_mut() {
            match edges.get(*index).and_then(|to| to.get(*next)).copied() {
                Some(to) => {
                    *next += 1;
                    if is_new(to) {
                        path.push((to, 0));
                    }
                }
                None => {
                    finish(start, *index);
                    path.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_comes_before_like_what_is_required() {
        let (requires, wants) = ([vec![], vec![0], vec![]], [vec![], vec![2], vec![]]);
        assert_eq!(after(&requires, &wants), [vec![], vec![0, 2], vec![]]);
    }

    #[test]
    fn wants_of_a_circle_do_not_count_and_all_others_do() {
        // 0 and 1 want each other, 2 wants 0, and 1 wants 3.
        let wants = [vec![1], vec![0, 3], vec![0], vec![]];
        assert_eq!(after(&[const { vec![] }; 4], &wants), [vec![], vec![3], vec![0], vec![]]);
    }

    #[test]
    fn in_a_circle_with_a_requirement_only_that_counts() {
        // 0 requires 1, which wants 2, which wants 0.
        let (requires, wants) = ([vec![1], vec![], vec![]], [vec![], vec![2], vec![0]]);
        assert_eq!(after(&requires, &wants), [vec![1], vec![], vec![]]);
    }

    #[test]
    fn an_extension_that_wants_itself_waits_for_nothing() {
        assert_eq!(after(&[vec![]], &[vec![0]]), [Vec::<usize>::new()]);
    }

    fn extension(id: &str, fulfills: &[&str], calls: &[&str]) -> Arc<ExtensionConfig> {
        let contracts = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let mut extension = ExtensionConfig::new(id.parse().unwrap(), "unread.wasm");
        (extension.fulfills, extension.requires) = (contracts(fulfills), contracts(calls));
        extension.into()
    }

    /// The stages as text, as in `a b, c`.
    fn staged(running: &[Arc<ExtensionConfig>], configured: &[Arc<ExtensionConfig>]) -> String {
        let mut stages: Vec<_> =
            stages(running, configured).into_iter().map(|(id, stage)| (stage, id.to_string())).collect();
        stages.sort_unstable();
        let each = stages.chunk_by(|one, other| one.0 == other.0);
        let names =
            |stage: &[(usize, String)]| stage.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>().join(" ");
        each.map(names).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn an_extension_changes_after_all_that_it_requires_or_wants() {
        let mut wants = ExtensionConfig::clone(&extension("d", &[], &["b@1"]));
        wants.wants = vec!["c@1".parse().unwrap()];
        let all = [
            extension("a", &["a@1"], &["main@1"]),
            extension("b", &["b@1"], &["a@1"]),
            extension("c", &["c@1"], &["b@1"]),
            wants.into(),
            extension("e", &[], &[]),
        ];
        assert_eq!(staged(&all, &all), "a e, b, c, d");
        assert_eq!(staged(&[], &all), "a e, b, c, d");
    }

    #[test]
    fn what_is_removed_goes_after_those_that_call_it_now() {
        let running =
            [extension("old", &["c@1"], &[]), extension("user", &[], &["c@1"]), extension("x", &[], &[])];
        let configured = [extension("user", &[], &[])];
        assert_eq!(staged(&running, &configured), "user x, old");
    }

    #[test]
    fn a_contract_moves_within_one_stage() {
        let running = [
            extension("base", &["base@1"], &[]),
            extension("giver", &["c@1"], &["base@1"]),
            extension("user", &[], &["c@1"]),
        ];
        // `giver` is removed, or stays without the contract.
        let taker = extension("taker", &["c@1"], &[]);
        let moved = [running[0].clone(), running[2].clone(), taker.clone()];
        assert_eq!(staged(&running, &moved), "base giver taker, user");
        let kept = [running[0].clone(), extension("giver", &[], &["base@1"]), running[2].clone(), taker];
        assert_eq!(staged(&running, &kept), "base, giver taker, user");
    }

    #[test]
    fn extensions_that_want_each_other_and_instances_share_a_stage() {
        let mut copy = ExtensionConfig::clone(&extension("a", &["a@1"], &[]));
        let second = copy.id.copy(2);
        copy.copy_of = Some(std::mem::replace(&mut copy.id, second));
        let all = [
            extension("a", &["a@1"], &["b@1"]),
            copy.into(),
            extension("b", &["b@1"], &["a@1"]),
            extension("c", &[], &["b@1"]),
        ];
        assert_eq!(staged(&all, &all), "a a.2 b, c");
        assert_eq!(staged(&all, &[all[0].clone(), all[2].clone()]), "a a.2 b c", "which calls nobody");
    }

    #[test]
    fn a_chain_of_ten_thousand_is_no_deeper_than_one() {
        let wants: Vec<Vec<usize>> = (0..10_000).map(|index| vec![(index + 1) % 10_000]).collect();
        let none = vec![Vec::new(); wants.len()];
        assert_eq!(after(&none, &wants), none, "one circle of all");
        assert_eq!(levels(&wants), vec![0; wants.len()]);
        let chain: Vec<Vec<usize>> = (0..10_000).map(|index| (index + 1..10_000).take(1).collect()).collect();
        assert_eq!(levels(&chain), (0..10_000).rev().collect::<Vec<_>>());
    }
}
