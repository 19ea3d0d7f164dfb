//! Numbers, and how many of something there may be.

use super::{
    change::Change,
    walk::{Place, Walk},
};
use crate::{Shape, check::range_of, path};

/// Compares two numbers. Says nothing and returns `false` if one is no number, or only one has fractions in a way
/// that breaks.
pub(super) fn compare<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: &'a Shape, new: &'a Shape) -> bool {
    match (old, new) {
        (Shape::Integer { .. }, Shape::Integer { .. }) => {
            let (old, new) = (whole_range(old), whole_range(new));
            range(walk, place, "be", (old, new), |bound| {
                (bound != i128::MIN && bound != i128::MAX).then(|| bound.to_string())
            });
            true
        }
        (Shape::Number { .. }, Shape::Number { .. }) => {
            let (old, new) = (number_range(old), number_range(new));
            range(walk, place, "be", (old, new), |bound: f64| bound.is_finite().then(|| bound.to_string()));
            true
        }
        (Shape::Integer { .. }, Shape::Number { .. }) => {
            walk.changed(
                place,
                &Change::Gained { what: "be a number with a fraction".into(), expected: false },
            );
            true
        }
        (Shape::Number { .. }, Shape::Integer { .. }) => {
            walk.changed(
                place,
                &Change::Lost { what: "be a number with a fraction".into(), expected: false },
            );
            true
        }
        _ => false,
    }
}

/// Compares how many there may be.
pub(super) fn counts<'a>(
    walk: &mut Walk<'a>,
    place: &Place<'a>,
    old: (Option<u64>, Option<u64>),
    new: (Option<u64>, Option<u64>),
    thing: &str,
) {
    let bounds = |(min, max): (Option<u64>, Option<u64>)| (min.unwrap_or(0), max.unwrap_or(u64::MAX));
    let shown = |bound: u64| (bound != 0 && bound != u64::MAX).then(|| path::counted(bound, thing));
    range(walk, place, "have", (bounds(old), bounds(new)), shown);
}

fn range<'a, T: PartialOrd + Copy>(
    walk: &mut Walk<'a>,
    place: &Place<'a>,
    verb: &str,
    ((old_least, old_greatest), (new_least, new_greatest)): ((T, T), (T, T)),
    shown: impl Fn(T) -> Option<String>,
) {
    let than = |what: &str, bound: T| match shown(bound) {
        Some(bound) => format!("{verb} {what} than {bound}"),
        None => format!("{verb} {what}"),
    };
    let (less, more) = (|bound| than("less", bound), |bound| than("more", bound));
    if new_least < old_least {
        walk.changed(place, &Change::Gained { what: less(old_least), expected: false });
    } else if new_least > old_least {
        walk.changed(place, &Change::Lost { what: less(new_least), expected: false });
    }
    if new_greatest > old_greatest {
        walk.changed(place, &Change::Gained { what: more(old_greatest), expected: false });
    } else if new_greatest < old_greatest {
        walk.changed(place, &Change::Lost { what: more(new_greatest), expected: false });
    }
}

fn whole_range(shape: &Shape) -> (i128, i128) {
    let Shape::Integer { minimum, maximum, format } = shape else { return (i128::MIN, i128::MAX) };
    let (least, greatest) = range_of(format.as_deref());
    (
        minimum.map_or(least, |minimum| minimum.max(least)),
        maximum.map_or(greatest, |maximum| maximum.min(greatest)),
    )
}

fn number_range(shape: &Shape) -> (f64, f64) {
    let Shape::Number { minimum, maximum, .. } = shape else { return (f64::NEG_INFINITY, f64::INFINITY) };
    (minimum.unwrap_or(f64::NEG_INFINITY), maximum.unwrap_or(f64::INFINITY))
}
