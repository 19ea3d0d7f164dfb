//! Values that go from one component to another as they are, where both have the same types. Nobody writes or reads text.

use std::{any::Any, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::component::Val;
use weir_bus::{CarriedValues, Error, ValueTypes};

use super::types::Signature;

/// The values of one call.
#[derive(Debug)]
pub(super) struct CallValues {
    /// What the receiver's function takes and returns: by this it knows that the values are its own.
    signature: Arc<Signature>,
    bytes: u64,
    /// The most bytes that the result may take.
    most: u64,
    /// Until the function is called.
    arguments: Mutex<Vec<Val>>,
    /// What the function has returned, if that is no error, and its bytes.
    result: Mutex<Option<(Val, u64)>>,
}

impl CallValues {
    /// Copies arguments for a function. Returns none if they take more than so many bytes.
    pub(super) fn new(signature: Arc<Signature>, arguments: &[Val], most: u64) -> Option<Arc<Self>> {
        let bytes = arguments.iter().map(size_of_value).sum();
        let new = || Self {
            signature,
            bytes,
            most,
            arguments: Mutex::new(arguments.to_vec()),
            result: Mutex::default(),
        };
        (bytes <= most).then(|| Arc::new(new()))
    }

    /// The values of a request, if they were made for this function.
    pub(super) fn of(values: &Arc<dyn CarriedValues>, signature: &Arc<Signature>) -> Option<Arc<Self>> {
        let values: Arc<dyn Any + Send + Sync> = values.clone();
        values.downcast::<Self>().ok().filter(|own| Arc::ptr_eq(&own.signature, signature))
    }

    pub(super) fn take_arguments(&self) -> Vec<Val> {
        std::mem::take(&mut *self.arguments.lock())
    }

    /// Hands back what the function has returned. Gives it back as an error if it takes too many bytes.
    pub(super) fn give(&self, result: Val) -> Result<(), Val> {
        let bytes = size_of_value(&result);
        if bytes > self.most {
            return Err(result);
        }
        *self.result.lock() = Some((result, bytes));
        Ok(())
    }

    /// What the function has returned, and the bytes that it takes.
    pub(super) fn take_result(&self) -> Option<(Val, u64)> {
        self.result.lock().take()
    }
}

impl CarriedValues for CallValues {
    fn types(&self) -> ValueTypes {
        self.signature.clone()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn payload(&self, most: u64) -> Result<Bytes, Error> {
        self.signature.payload(&self.arguments.lock(), most)
    }
}

/// The bytes that a value takes in memory.
fn size_of_value(value: &Val) -> u64 {
    size_of::<Val>() as u64 + outside(value)
}

/// The bytes that a value takes beside itself.
fn outside(value: &Val) -> u64 {
    let boxed = |value: &Option<Box<Val>>| {
        value.as_deref().map_or(0, |value| allocated(size_of::<Val>()) + outside(value))
    };
    let text = |text: &String| allocated(text.capacity());
    match value {
        Val::String(value) | Val::Enum(value) => text(value),
        Val::List(values) | Val::Tuple(values) => {
            allocated(values.capacity() * size_of::<Val>()) + values.iter().map(outside).sum::<u64>()
        }
        Val::Record(fields) => {
            let all = fields.iter().map(|(name, value)| text(name) + outside(value));
            allocated(fields.capacity() * size_of::<(String, Val)>()) + all.sum::<u64>()
        }
        Val::Variant(case, value) => text(case) + boxed(value),
        Val::Option(value) | Val::Result(Ok(value) | Err(value)) => boxed(value),
        Val::Flags(names) => {
            allocated(names.capacity() * size_of::<String>()) + names.iter().map(text).sum::<u64>()
        }
        _ => 0,
    }
}

/// What an allocator takes for so many bytes: a word more, in steps of 16.
fn allocated(bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { (bytes + size_of::<usize>()).next_multiple_of(16) as u64 }
}
