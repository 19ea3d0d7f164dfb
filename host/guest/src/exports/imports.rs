//! Imports of interfaces that Weir does not have: each function is a call of an operation, through the bus.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::{
    Engine, StoreContextMut,
    component::{Linker, Val, types::ComponentInstance},
};
use weir_bus::Error;

use super::{
    VALUES,
    json::{self, Refused, Room},
    signatures,
    types::{Returns, Signature},
};
use crate::{imports::call_contract, instance_state::InstanceState, memory::size};

/// Defines the functions of an interface that a component imports. An error says why none can be.
pub(crate) fn link_import(
    linker: &mut Linker<InstanceState>,
    engine: &Engine,
    name: &str,
    interface: &ComponentInstance,
) -> Result<(), String> {
    let functions = signatures(engine, interface)?;
    let mut instance = linker.instance(name).map_err(|error| error.to_string())?;
    let name: Arc<str> = name.into();
    for (function, signature) in functions {
        let (interface, called) = (name.clone(), Arc::new((function.clone(), signature)));
        let defined = instance.func_new_async(&function, move |store, _, arguments, results| {
            let (interface, called) = (interface.clone(), called.clone());
            Box::new(async move {
                let (function, signature) = &*called;
                let result = call(store, &interface, function, signature, arguments).await?;
                if let (Some(place), Some(result)) = (results.first_mut(), result) {
                    *place = result;
                }
                Ok(())
            })
        });
        defined.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Calls the contract that stands for the interface. Fails, which ends the guest, if the function has no error that could
/// say what went wrong.
async fn call(
    mut store: StoreContextMut<'_, InstanceState>,
    interface: &str,
    function: &str,
    signature: &Signature,
    arguments: &[Val],
) -> wasmtime::Result<Option<Val>> {
    let config = store.data().config.clone();
    let contract =
        config.imports.iter().find_map(|(name, contract)| (name.as_str() == interface).then_some(contract));
    let contract = contract.ok_or_else(|| wasmtime::format_err!("no contract answers `{interface}`"))?;
    let room = Room(size(config.limits.message_size.saturating_mul(VALUES)));
    let is_of_bytes = signature.is_of_bytes();
    let payload = match arguments {
        [Val::List(bytes)] if is_of_bytes => json::bytes_of(bytes),
        arguments => signature.payload(arguments)?,
    };
    let answer = call_contract(&mut store, contract.as_str(), function, Bytes::from(payload)).await?;
    let read = |payload: &[u8], ty| {
        let value = match is_of_bytes {
            true => json::value_of_bytes(payload, room),
            false => json::read(payload, ty, room),
        };
        value.map_err(|refused| match refused {
            Refused::Misfit(misfit) => Error::handler("invalid-answer", format!("the answer: {misfit}")),
            Refused::TooLarge => Error::handler("invalid-answer", "the answer has too many values"),
        })
    };
    let fails = |error: &Error| wasmtime::format_err!("`{contract}` `{function}`: {error}");
    match &signature.returns {
        Returns::Nothing => answer.map(|_| None).map_err(|error| fails(&error)),
        Returns::Value(ty) => {
            answer.and_then(|payload| read(&payload, ty)).map(Some).map_err(|error| fails(&error))
        }
        Returns::Fallible { ok, error: error_type } => {
            let ok = answer.and_then(|payload| match ok {
                Some(ty) => read(&payload, ty).map(|value| Some(Box::new(value))),
                None => Ok(None),
            });
            let result = match ok {
                Ok(value) => Ok(value),
                Err(error) => {
                    let own = json::error_for(&error, error_type.as_ref(), room);
                    Err(own.ok_or_else(|| fails(&error))?)
                }
            };
            Ok(Some(Val::Result(result)))
        }
    }
}
