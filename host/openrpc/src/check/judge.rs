//! Reads a payload once and judges every value in it by all types that it may have.

use std::{
    cell::{Cell, OnceCell},
    collections::HashMap,
    fmt,
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use super::{
    Misfit, Unknown,
    fault::Fault,
    scalar::Scalar,
    union::{Union, View, members},
};
use crate::{Document, Schema, Shape, path::shown};

/// Steps that judging any payload may take. A step compares one value with one type.
const STEPS: u64 = 250_000;

/// Further steps for each byte of the payload.
const STEPS_PER_BYTE: u64 = 4;

pub(super) struct Judge<'a> {
    document: &'a Document,
    /// The document's types by name. Without it, a thousand types would be searched for each of a million values.
    types: OnceCell<HashMap<&'a str, &'a Schema>>,
    pub(super) unknown: Unknown,
    /// Steps that are left.
    steps: Cell<u64>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(document: &'a Document, unknown: Unknown) -> Self {
        Self { document, types: OnceCell::new(), unknown, steps: Cell::new(STEPS) }
    }

    /// Whether `payload` is of this type.
    pub(super) fn payload(self, payload: &[u8], view: View<'a>) -> Result<(), Misfit> {
        let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        self.steps.set(STEPS.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE)));
        let mut json = serde_json::Deserializer::from_slice(payload);
        let unions = vec![self.union(view)];
        let faults = Values { judge: &self, unions }.deserialize(&mut json);
        let faults = faults.and_then(|faults| json.end().map(|()| faults));
        match faults {
            Ok(faults) => {
                faults.into_iter().flatten().next().map_or(Ok(()), |fault| Err(fault.into_misfit()))
            }
            Err(_) if self.steps.get() == 0 => Err(Misfit {
                path: "$".into(),
                message: "has too many values for types with so many alternatives".into(),
            }),
            Err(error) => Err(Misfit {
                path: "$".into(),
                message: format!("is not JSON: {}", shown(&error.to_string())),
            }),
        }
    }

    fn union(&self, view: View<'a>) -> Union<'a> {
        Union::of(view, |name| {
            let by_name = || self.document.types.iter().map(|(name, schema)| (&**name, schema)).collect();
            self.types.get_or_init(by_name).get(name).copied()
        })
    }

    /// Counts this many steps. Fails once none are left.
    pub(super) fn take_steps<E: Error>(&self, steps: usize) -> Result<(), E> {
        let cost = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps.set(self.steps.get().saturating_sub(cost));
        if self.steps.get() == 0 { Err(E::custom("too many steps")) } else { Ok(()) }
    }
}

/// Judges a value by several unions. The result says for each union why the value does not fit, or that it fits.
pub(super) struct Values<'j, 'a> {
    judge: &'j Judge<'a>,
    unions: Vec<Union<'a>>,
}

/// For each type, what is wrong with a value. `None` if the value fits.
pub(super) type Faults = Vec<Option<Fault>>;

/// Prepares to judge a value inside a list or an object. Returns the indices of the types in `all` that describe it,
/// and the unions of these descriptions. A type that has a fault is left out, unless it has a constant here: a tag.
pub(super) fn inner<'j, 'a>(
    judge: &'j Judge<'a>,
    all: &[View<'a>],
    faults: &Faults,
    find: impl Fn(&View<'a>) -> Option<&'a Schema>,
) -> (Vec<usize>, Values<'j, 'a>) {
    let mut owners = Vec::new();
    let mut unions = Vec::new();
    for (owner, (view, fault)) in all.iter().zip(faults).enumerate() {
        if let Some(schema) = find(view)
            && (fault.is_none() || matches!(schema.shape, Shape::Constant(_)))
        {
            owners.push(owner);
            unions.push(judge.union(View::Schema(schema)));
        }
    }
    (owners, Values { judge, unions })
}

/// Adds the faults of a value inside to those of the types in `owners`. The first fault of a type stays, unless a tag
/// shows that another type is meant.
pub(super) fn note(faults: &mut Faults, owners: &[usize], found: Faults, outer: impl Fn(Fault) -> Fault) {
    for (owner, fault) in owners.iter().zip(found) {
        if let (Some(place), Some(fault)) = (faults.get_mut(*owner), fault)
            && (place.is_none() || fault.is_tag())
        {
            *place = Some(outer(fault));
        }
    }
}

impl<'a> Values<'_, 'a> {
    /// Judges the value once by each member of the unions, with `judge`, and derives the result of each union.
    fn judged<E: Error>(
        self,
        judge: impl FnOnce(&Judge<'a>, &[View<'a>]) -> Result<Faults, E>,
    ) -> Result<Faults, E> {
        let (all, places) = members(&self.unions);
        // Collecting the members has compared each type with the others.
        self.judge.take_steps(all.len().saturating_mul(all.len()))?;
        let faults = judge(self.judge, &all)?;
        let of_union = |(union, places): (&Union<'a>, Vec<usize>)| {
            let faults: Vec<&Option<Fault>> = places.iter().filter_map(|place| faults.get(*place)).collect();
            if faults.iter().any(|fault| fault.is_none()) {
                return None;
            }
            if union.open && faults.iter().copied().flatten().all(Fault::is_tag) {
                return None;
            }
            let faults = faults.iter().copied().flatten();
            Some(Fault::best(faults).unwrap_or_else(|| Fault::message("must be absent")))
        };
        Ok(self.unions.iter().zip(places).map(of_union).collect())
    }

    fn scalar<E: Error>(self, scalar: Scalar<'_>) -> Result<Faults, E> {
        self.judged(|_, all| {
            let fault = |view: &View<'a>| match view {
                View::Schema(schema) => scalar.fault(&schema.shape),
                View::Record { .. } => scalar.fault(&Shape::Record { fields: Vec::new(), strict: false }),
            };
            Ok(all.iter().map(fault).collect())
        })
    }
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = Faults;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Faults, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = Faults;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Faults, E> {
        self.scalar(Scalar::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Faults, E> {
        self.scalar(Scalar::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Faults, E> {
        self.scalar(Scalar::Integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Faults, E> {
        self.scalar(Scalar::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Faults, E> {
        self.scalar(Scalar::Number(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Faults, E> {
        self.scalar(Scalar::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Faults, A::Error> {
        self.judged(|judge, all| judge.list(all, list))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Faults, A::Error> {
        self.judged(|judge, all| judge.object(all, object))
    }
}
