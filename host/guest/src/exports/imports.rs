//! Imports of interfaces that Weir does not have: each function is a call of an operation, through the bus.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::{
    Engine, StoreContextMut,
    component::{
        Linker, LinkerInstance, Val, WasmList,
        types::{ComponentFunc, ComponentInstance, ComponentItem},
    },
};
use weir_bus::{Carried, Error};
use weir_names::harmless;

use super::{
    MAX_FUNCTIONS, ROOM, json,
    read::{self, Refused},
    too_many,
    types::{Returns, Signature, Types, ValueType},
    values::CallValues,
};
use crate::{
    abi::Handed,
    imports::{call_contract, take},
    instance_state::InstanceState,
    memory::size,
    meter,
};

/// A function of an imported interface.
struct Imported {
    interface: Arc<str>,
    name: String,
    signature: Signature,
    /// The same with `_` for `-` in JSON, once an extension has asked for that.
    in_snake_case: OnceLock<Signature>,
    /// The function that a call went to last, and whether it has the same types.
    compared: Mutex<(Weak<Signature>, bool)>,
}

/// Defines the functions of an interface that a component imports. An error says why none can be.
pub(crate) fn link_import(
    linker: &mut Linker<InstanceState>,
    engine: &Engine,
    name: &str,
    interface: &ComponentInstance,
    types: &mut Types,
) -> Result<(), String> {
    let mut functions = Vec::new();
    for (function, item) in interface.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(ty) => functions.push(imported(name.into(), function, &ty, types)?),
            ComponentItem::Type(_) => {}
            _ => return Err(format!("`{}` is no function", harmless(function, 128))),
        }
    }
    if functions.len() > MAX_FUNCTIONS {
        return Err(too_many(functions.len()));
    }
    let mut instance = linker.instance(name).map_err(|error| error.to_string())?;
    functions
        .into_iter()
        .try_for_each(|function| define(&mut instance, function))
        .map_err(|error| error.to_string())
}

fn imported(
    interface: Arc<str>,
    name: &str,
    ty: &ComponentFunc,
    types: &mut Types,
) -> Result<Imported, String> {
    let signature = types.signature(name, ty).map_err(|fault| fault.of_function(name))?;
    Ok(Imported {
        interface,
        name: name.to_owned(),
        signature,
        in_snake_case: OnceLock::new(),
        compared: Mutex::default(),
    })
}

fn define(instance: &mut LinkerInstance<'_, InstanceState>, function: Imported) -> wasmtime::Result<()> {
    let name = function.name.clone();
    let function = Arc::new(function);
    // Bytes are handed on as they are, without a value for each.
    macro_rules! of_bytes {
        ($of_answer:expr) => {
            instance.func_wrap_async(&name, move |mut store, (data,): (Handed<WasmList<u8>>,)| {
                let function = function.clone();
                Box::new(async move {
                    let payload = take(&mut store, &data, 0)?;
                    let answer = function.answer(&mut store, payload.map(Carried::from)).await?;
                    $of_answer(&*function, answer)
                })
            })
        };
    }
    match (&function.signature.returns, function.signature.is_of_bytes()) {
        (Returns::Nothing, true) => of_bytes!(|it: &Imported, answer: Result<Bytes, Error>| {
            answer.map(drop).map_err(|error| it.fails(&error))
        }),
        (Returns::Value(_), true) => of_bytes!(|it: &Imported, answer: Result<Bytes, Error>| {
            answer.map(|answer| (answer,)).map_err(|error| it.fails(&error))
        }),
        (Returns::Fallible { ok: Some(_), error: Some(ValueType::String) }, true) => {
            of_bytes!(|_: &Imported, answer: Result<Bytes, Error>| Ok((answer.map_err(in_words),)))
        }
        (Returns::Fallible { ok: None, error: Some(ValueType::String) }, true) => {
            of_bytes!(|_: &Imported, answer: Result<Bytes, Error>| Ok((answer.map(drop).map_err(in_words),)))
        }
        (_, is_of_bytes) => instance.func_new_async(&name, move |mut store, _, arguments, results| {
            let function = function.clone();
            Box::new(async move {
                let most = store.data().peer.limits().message_size;
                let values = if is_of_bytes { None } else { function.values(store.data_mut(), arguments) };
                let carried = match (&values, arguments) {
                    (Some(values), _) => Ok(Carried::Values(values.clone())),
                    (None, [Val::List(bytes)]) if is_of_bytes => {
                        Ok(Bytes::from(json::bytes_of(bytes)).into())
                    }
                    (None, arguments) => {
                        function.signature(store.data()).payload(arguments, most).map(Carried::from)
                    }
                };
                let answer = function.answer(&mut store, carried).await?;
                // A result that came too late is not the answer.
                let result = match (answer, values.and_then(|values| values.take_result())) {
                    (Ok(_), Some((result, bytes))) => {
                        store.data().peer.note_bytes(bytes);
                        meter::charge_more(&mut store, size(bytes))?;
                        Some(result)
                    }
                    (answer, _) => function.result(store.data(), answer, is_of_bytes)?,
                };
                if let (Some(place), Some(result)) = (results.first_mut(), result) {
                    *place = result;
                }
                Ok(())
            })
        }),
    }
}

/// The text of an error, where the function has no other.
fn in_words(error: Error) -> String {
    match error {
        Error::Handler(own) if own.code == json::FAILED => own.message,
        error => error.to_string(),
    }
}

impl Imported {
    /// What the function takes and returns, with the names that its extension has in JSON.
    fn signature(&self, state: &InstanceState) -> &Signature {
        match state.config.names_in_snake_case(&self.interface) {
            true => self.in_snake_case.get_or_init(|| self.signature.in_snake_case()),
            false => &self.signature,
        }
    }

    /// The arguments as they are, if the function of the provider has the same types.
    fn values(&self, state: &mut InstanceState, arguments: &[Val]) -> Option<Arc<CallValues>> {
        // With other names in JSON, values would not say what their JSON does.
        if !std::ptr::eq(self.signature(state), &raw const self.signature) {
            return None;
        }
        let config = state.config.clone();
        let contract = config.imports.get(&*self.interface)?;
        let (types, most) = state.value_types(contract.as_str(), &self.name)?;
        let signature = types.downcast::<Signature>().ok()?;
        let mut compared = self.compared.lock();
        if compared.0.as_ptr() != Arc::as_ptr(&signature) {
            *compared = (Arc::downgrade(&signature), *signature == self.signature);
        }
        let is_equal = compared.1;
        drop(compared);
        if is_equal { CallValues::new(signature, arguments, most.min(ROOM as u64)) } else { None }
    }

    /// Calls the contract that stands for the interface.
    async fn answer(
        &self,
        store: &mut StoreContextMut<'_, InstanceState>,
        carried: Result<Carried, Error>,
    ) -> wasmtime::Result<Result<Bytes, Error>> {
        let config = store.data().config.clone();
        let contract = config.imports.get(&*self.interface);
        let contract =
            contract.ok_or_else(|| wasmtime::format_err!("no contract answers `{}`", self.interface))?;
        match carried {
            Ok(carried) => call_contract(store, contract.as_str(), &self.name, carried).await,
            Err(error) => {
                // What was written of the arguments is paid for, too.
                meter::charge(store, size(config.limits.message_size))?;
                Ok(Err(error))
            }
        }
    }

    /// What the function returns for an answer. Fails, which ends the guest, if the function has no error that could say
    /// what went wrong.
    fn result(
        &self,
        state: &InstanceState,
        answer: Result<Bytes, Error>,
        is_of_bytes: bool,
    ) -> wasmtime::Result<Option<Val>> {
        let read = |payload: &[u8], ty| {
            let value = match is_of_bytes {
                true => read::value_of_bytes(payload, ROOM),
                false => read::read_answer(payload, ty, ROOM),
            };
            value.map_err(|refused| match refused {
                Refused::Misfit(misfit) => Error::handler("invalid-answer", format!("the answer: {misfit}")),
                Refused::TooLarge => Error::handler("invalid-answer", "the answer has too many values"),
            })
        };
        match &self.signature(state).returns {
            Returns::Nothing => answer.map(|_| None).map_err(|error| self.fails(&error)),
            Returns::Value(ty) => {
                answer.and_then(|payload| read(&payload, ty)).map(Some).map_err(|error| self.fails(&error))
            }
            Returns::Fallible { ok, error: error_type } => {
                let ok = answer.and_then(|payload| match ok {
                    Some(ty) => read(&payload, ty).map(|value| Some(Box::new(value))),
                    None => Ok(None),
                });
                Ok(Some(Val::Result(match ok {
                    Ok(value) => Ok(value),
                    Err(error) => {
                        let own = json::error_for(&error, error_type.as_ref(), ROOM);
                        Err(own.ok_or_else(|| self.fails(&error))?)
                    }
                })))
            }
        }
    }

    fn fails(&self, error: &Error) -> wasmtime::Error {
        wasmtime::format_err!("`{}` `{}`: {error}", self.interface, self.name)
    }
}
