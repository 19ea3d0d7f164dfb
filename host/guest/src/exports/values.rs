//! Values that go from one component to another as they are, where both have the same types. Nobody writes or reads text.

use std::{any::Any, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::component::Val;
use weir_bus::CarriedValues;

use super::types::Signature;

/// The values of one call.
#[derive(Debug)]
pub(super) struct CallValues {
    /// What the receiver's function takes and returns: by this it knows that the values are its own.
    signature: Arc<Signature>,
    bytes: u64,
    /// Until the function is called.
    arguments: Mutex<Vec<Val>>,
    /// What the function has returned, if that is no error.
    result: Mutex<Option<Val>>,
}

impl CallValues {
    /// Copies arguments for a function. Returns none if they take more than so many bytes.
    pub(super) fn new(signature: Arc<Signature>, arguments: &[Val], most: u64) -> Option<Arc<Self>> {
        let bytes = arguments.iter().map(bytes_of).sum();
        let new =
            || Self { signature, bytes, arguments: Mutex::new(arguments.to_vec()), result: Mutex::default() };
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

    /// Hands back what the function has returned. Gives it back as an error if it takes more than so many bytes.
    pub(super) fn give(&self, result: Val, most: u64) -> Result<(), Val> {
        if bytes_of(&result) > most {
            return Err(result);
        }
        *self.result.lock() = Some(result);
        Ok(())
    }

    /// What the function has returned, and the bytes that it takes.
    pub(super) fn take_result(&self) -> Option<(Val, u64)> {
        let result = self.result.lock().take()?;
        let bytes = bytes_of(&result);
        Some((result, bytes))
    }
}

impl CarriedValues for CallValues {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    // A text has at most six times as many bytes as the values: each byte of a string may be escaped as `\u0000`.
    fn payload(&self) -> Bytes {
        self.signature.payload(&self.arguments.lock(), u64::MAX).unwrap_or_default()
    }
}

/// The bytes that a value takes in memory.
fn bytes_of(value: &Val) -> u64 {
    let inner = |value: &Option<Box<Val>>| value.as_deref().map_or(0, bytes_of);
    let text = |text: &String| (size_of::<String>() + text.len()) as u64;
    size_of::<Val>() as u64
        + match value {
            Val::String(value) | Val::Enum(value) => value.len() as u64,
            Val::List(values) | Val::Tuple(values) => values.iter().map(bytes_of).sum(),
            Val::Record(fields) => fields.iter().map(|(name, value)| text(name) + bytes_of(value)).sum(),
            Val::Variant(case, value) => case.len() as u64 + inner(value),
            Val::Option(value) | Val::Result(Ok(value) | Err(value)) => inner(value),
            Val::Flags(names) => names.iter().map(text).sum(),
            _ => 0,
        }
}
