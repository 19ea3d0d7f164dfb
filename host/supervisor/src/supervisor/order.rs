//! The order of starts and stops: an extension starts after certain others, and stops before them.

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

    #[test]
    fn a_chain_of_ten_thousand_is_no_deeper_than_one() {
        let wants: Vec<Vec<usize>> = (0..10_000).map(|index| vec![(index + 1) % 10_000]).collect();
        let none = vec![Vec::new(); wants.len()];
        assert_eq!(after(&none, &wants), none, "one circle of all");
    }
}
