use std::collections::VecDeque;

use proptest::prelude::*;

use super::Channel;

#[derive(Clone, Copy, Debug)]
enum Op {
    PushBack,
    PushFront,
    PopFront,
    /// Takes the first that is divisible by this, if that is permitted.
    Take(u32, bool),
    Extract(u32),
    First(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::PushBack),
        1 => Just(Op::PushFront),
        1 => Just(Op::PopFront),
        1 => (1u32..5, any::<bool>()).prop_map(|(by, may)| Op::Take(by, may)),
        1 => (2u32..5).prop_map(Op::Extract),
        1 => (0usize..5).prop_map(Op::First),
        1 => Just(Op::First(usize::MAX)),
    ]
}

proptest! {
    #[test]
    fn messages_keep_their_order_whatever_is_taken_put_back_and_looked_at(ops in prop::collection::vec(op(), 0..200)) {
        let (mut channel, mut model) = (Channel::default(), VecDeque::new());
        for (number, op) in (0u32..).zip(ops) {
            match op {
                Op::PushBack => {
                    channel.push_back(number);
                    model.push_back(number);
                }
                Op::PushFront => {
                    channel.push_front(number);
                    model.push_front(number);
                }
                Op::PopFront => prop_assert_eq!(channel.pop_front(), model.pop_front()),
                Op::Take(by, may) => {
                    let mut asked = 0;
                    let permit = || {
                        asked += 1;
                        may.then_some("permit")
                    };
                    let taken = channel.take(|item| item % by == 0, permit);
                    let place = model.iter().position(|item| item % by == 0);
                    prop_assert_eq!(asked, usize::from(place.is_some()));
                    let from_model = place.filter(|_| may).and_then(|place| model.remove(place));
                    prop_assert_eq!(taken, from_model.map(|item| (item, "permit")));
                }
                Op::Extract(by) => {
                    let taken = channel.extract(|item| item % by == 0);
                    prop_assert_eq!(taken, model.iter().copied().filter(|item| item % by == 0).collect::<Vec<_>>());
                    model.retain(|item| item % by != 0);
                }
                Op::First(max) => {
                    let first = channel.first(max).into_iter().flatten().take(max).map(|item| **item);
                    prop_assert!(first.eq(model.iter().copied().take(max)));
                }
            }
            prop_assert_eq!(channel.len(), model.len());
            prop_assert_eq!(channel.is_empty(), model.is_empty());
        }
    }
}

#[test]
fn what_is_taken_at_once_and_what_is_behind_it_are_never_in_front() {
    let mut channel = Channel::default();
    (1..=4).for_each(|number| channel.push_back(number));
    assert_eq!(channel.take(|number| *number == 2, || Some("permit")), Some((2, "permit")));
    assert_eq!(channel.take(|number| *number == 3, || None::<()>), None);
    let front: Vec<_> = channel.0.iter().flat_map(|ends| &ends.front).map(|number| **number).collect();
    assert_eq!(front, [1, 3]);
}
