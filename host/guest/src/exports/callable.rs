//! The functions of an instance, and a call of one.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::{
    Store,
    component::{Func, InstancePre, Val},
};
use weir_bus::{Carried, Error};
use weir_config::{LimitHit, LimitName};
use weir_names::ContractName;

use super::{
    Function, ROOM, json,
    read::{self, Refused},
    types::{Returns, ValueType},
    values::CallValues,
};
use crate::{
    exit::{NotInstantiated, OverLimit, is_too_much},
    instance_state::InstanceState,
    program::Program,
};

/// A function of an instance.
pub(super) struct Callable<'p> {
    function: &'p Function,
    func: Func,
}

impl Callable<'_> {
    /// Calls the function. Returns its answer, or the error for arguments that do not fit.
    pub(super) async fn call(
        &self,
        store: &mut Store<InstanceState>,
        carried: Carried,
    ) -> wasmtime::Result<Result<Bytes, Error>> {
        let (payload, values) = match carried {
            Carried::Payload(payload) => (payload, None),
            Carried::Values(values) => match CallValues::of(&values, &self.function.signature) {
                Some(values) => (Bytes::new(), Some(values)),
                // They were sent for functions of an earlier program.
                None => match values.payload(store.data().peer.limits().message_size) {
                    Ok(payload) => (payload, None),
                    Err(error) => return Ok(Err(error)),
                },
            },
        };
        if self.function.signature.is_of_bytes()
            && let Some(answer) = self.call_with_bytes(store, &payload).await
        {
            return answer;
        }
        // The values that the function returns are counted, too.
        let transfer = store.hostcall_fuel();
        store.set_hostcall_fuel(transfer.max(ROOM));
        let called = self.call_with_values(store, payload, values).await;
        store.set_hostcall_fuel(transfer);
        called.map_err(|error| match is_too_much(&error) {
            true => {
                let room = transfer.max(ROOM) as u64;
                OverLimit(LimitHit::new(LimitName::TRANSFER, room.saturating_add(1), room)).into()
            }
            false => error,
        })
    }

    async fn call_with_values(
        &self,
        store: &mut Store<InstanceState>,
        payload: Bytes,
        values: Option<Arc<CallValues>>,
    ) -> wasmtime::Result<Result<Bytes, Error>> {
        let signature = &self.function.signature;
        let is_of_bytes = signature.is_of_bytes();
        let arguments = match &values {
            Some(values) => Ok(values.take_arguments()),
            None if is_of_bytes => read::value_of_bytes(&payload, ROOM).map(|value| vec![value]),
            None => signature.arguments(&payload, ROOM),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(Refused::Misfit(misfit)) => return Ok(Err(Error::invalid_argument(misfit))),
            Err(Refused::TooLarge) => {
                let message = format!("the values of the arguments take more than {ROOM} bytes in the host");
                return Ok(Err(Error::handler("too-large", message)));
            }
        };
        drop(payload);
        let mut result = [Val::Bool(false)];
        let results = match signature.returns {
            Returns::Nothing => &mut [],
            _ => result.as_mut_slice(),
        };
        self.func.call_async(&mut *store, &arguments, results).await?;
        drop(arguments);
        let [mut result] = result;
        let most = store.data().peer.limits().message_size;
        if let Some(values) = values.filter(|_| has_value(&signature.returns, &result)) {
            match values.give(result) {
                Ok(()) => return Ok(Ok(Bytes::new())),
                Err(too_large) => result = too_large,
            }
        }
        Ok(answer(&signature.returns, &result, is_of_bytes, most))
    }

    /// Calls a function of bytes without a value for each byte. Returns none if its error has a type that needs values.
    async fn call_with_bytes(
        &self,
        store: &mut Store<InstanceState>,
        payload: &Bytes,
    ) -> Option<wasmtime::Result<Result<Bytes, Error>>> {
        macro_rules! call {
            ($result:ty) => {
                match self.func.typed::<(Bytes,), $result>(&*store) {
                    Ok(function) => function.call_async(&mut *store, (payload.clone(),)).await,
                    Err(error) => Err(error),
                }
            };
        }
        Some(match &self.function.signature.returns {
            Returns::Nothing => call!(()).map(|()| Ok(Bytes::new())),
            Returns::Value(_) => call!((Bytes,)).map(|(answer,)| Ok(answer)),
            Returns::Fallible { ok: Some(_), error: Some(ValueType::String) } => {
                call!((Result<Bytes, String>,)).map(|(answer,)| answer.map_err(Error::failed))
            }
            Returns::Fallible { ok: None, error: Some(ValueType::String) } => call!((Result<(), String>,))
                .map(|(answer,)| answer.map(|()| Bytes::new()).map_err(Error::failed)),
            Returns::Fallible { .. } => return None,
        })
    }
}

/// Whether a function has returned a value, and no error.
fn has_value(returns: &Returns, result: &Val) -> bool {
    match returns {
        Returns::Nothing => false,
        Returns::Value(_) => true,
        Returns::Fallible { .. } => matches!(result, Val::Result(Ok(Some(_)))),
    }
}

/// The answer that a function's result stands for, of at most so many bytes.
fn answer(returns: &Returns, result: &Val, is_of_bytes: bool, most: u64) -> Result<Bytes, Error> {
    let value = |value: Option<(&Val, &ValueType)>| match value {
        _ if !is_of_bytes => json::written(value, most),
        Some((Val::List(bytes), _)) => Ok(json::bytes_of(bytes).into()),
        _ => Ok(Bytes::new()),
    };
    match (returns, result) {
        (Returns::Nothing, _) => value(None),
        (Returns::Value(ty), result) => value(Some((result, ty))),
        (Returns::Fallible { ok, .. }, Val::Result(Ok(result))) => value(result.as_deref().zip(ok.as_ref())),
        (Returns::Fallible { error, .. }, Val::Result(Err(result))) => {
            Err(json::error_of(result.as_deref().zip(error.as_ref())))
        }
        (Returns::Fallible { .. }, _) => Err(Error::failed("the function returned no result")),
    }
}

/// Makes an instance, and finds its functions: those of each contract, in their order.
pub(super) async fn callable<'p>(
    program: &Program,
    served: &[(&ContractName, &'p [Function])],
    store: &mut Store<InstanceState>,
) -> wasmtime::Result<Vec<Callable<'p>>> {
    let pre: &InstancePre<InstanceState> = program.exports()?;
    // Boxed, because the future would otherwise keep the space for instantiation while functions run.
    let instance = Box::pin(pre.instantiate_async(&mut *store)).await.map_err(NotInstantiated::mark)?;
    let functions = served.iter().flat_map(|(_, functions)| functions.iter());
    let callable = |function: &'p Function| {
        let func = instance.get_func(&mut *store, function.index);
        func.map(|func| Callable { function, func })
            .ok_or_else(|| wasmtime::format_err!("a function is missing"))
    };
    functions.map(callable).collect()
}
