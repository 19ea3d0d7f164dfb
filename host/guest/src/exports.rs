//! Components that export functions: the host takes the requests to an extension, and calls the function of each.
//!
//! The guest knows nothing of messages. What a program's `main` does, the host does here in its place: it declares the
//! operations, waits for requests, and answers them. So limits, deadlines, failures and restarts are those of a program.

mod describe;
mod imports;
mod json;
#[cfg(test)]
mod tests;
mod types;

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use bytes::Bytes;
use tokio::time::Instant;
use wasmtime::{
    AsContextMut, Engine, Store,
    component::{
        Component, ComponentExportIndex, Func, InstancePre, Val,
        types::{ComponentFunc, ComponentItem},
    },
};
use weir_bus::Error;
use weir_config::{ExtensionConfig, InterfaceName};
use weir_names::{ContractName, harmless};
use weir_schedule::Activity;

pub(crate) use self::{
    describe::{DescribedInterface, contract_of, interfaces},
    imports::link_import,
};
use self::{
    json::{Refused, Room},
    types::{Returns, Signature, Types, ValueType},
};
use crate::{
    abi,
    exit::{Exit, NotInstantiated},
    failures::Failures,
    imports::next_message,
    instance::{Instance, InstanceEnd, Opened},
    instance_state::{Exchange, InstanceState},
    memory::size,
    meter,
    program::Program,
    signals::Notice,
};

/// How much the values of a call may take in the host, as a multiple of `message-size`. A value takes 32 bytes.
const VALUES: u64 = 8;

/// The most names in a message.
const MAX_LISTED: usize = 8;

/// The interfaces that a component exports.
#[derive(Debug)]
pub(crate) struct Exported(Box<[Interface]>);

#[derive(Debug)]
struct Interface {
    name: Box<str>,
    /// Its functions, or why they cannot be called.
    functions: Result<Box<[Function]>, String>,
}

#[derive(Debug)]
struct Function {
    name: Box<str>,
    index: ComponentExportIndex,
    signature: Signature,
}

/// A function of an instance.
struct Callable<'p> {
    function: &'p Function,
    func: Func,
}

impl Exported {
    /// The interfaces of a component with functions, without WASI's.
    pub(crate) fn of(component: &Component) -> Self {
        let engine = component.engine();
        let ty = component.component_type();
        let (mut interfaces, mut root) = (Vec::new(), Vec::new());
        for (name, item) in ty.exports(engine) {
            match item.ty {
                ComponentItem::ComponentInstance(instance) if !name.starts_with("wasi:") => {
                    let Some(index) = component.get_export_index(None, name) else { continue };
                    let functions =
                        instance.exports(engine).filter_map(|(name, item)| function(name, item.ty));
                    interfaces.extend(Interface::of(component, name, Some(&index), functions.collect()));
                }
                ty => root.extend(function(name, ty)),
            }
        }
        interfaces.extend(Interface::of(component, "*", None, root));
        Self(interfaces.into())
    }

    /// What speaks against these exports.
    pub(crate) fn misfit(&self, exports: &BTreeMap<ContractName, InterfaceName>) -> Option<String> {
        let known = || self.0.iter().map(|interface| (&*interface.name, interface.functions.as_ref().err()));
        misfit(exports, known)
    }

    fn functions(&self, name: &str) -> &[Function] {
        let interface = self.0.iter().find(|interface| *interface.name == *name);
        interface.and_then(|it| it.functions.as_deref().ok()).unwrap_or_default()
    }
}

/// What speaks against exports, judged by the interfaces that a component exports, each with what speaks against it.
pub(crate) fn misfit<'i, I: Iterator<Item = (&'i str, Option<&'i String>)>>(
    exports: &BTreeMap<ContractName, InterfaceName>,
    known: impl Fn() -> I,
) -> Option<String> {
    exports.values().find_map(|export| match known().find(|(name, _)| *name == export.as_str()) {
        Some((_, None)) => None,
        Some((_, Some(why))) => Some(format!("its export `{export}` cannot be called, because {why}")),
        None => {
            let names = known().take(MAX_LISTED).map(|(name, _)| format!("`{}`", harmless(name, 256)));
            let names: Vec<_> = names.collect();
            let names = if names.is_empty() { "no functions".to_owned() } else { names.join(", ") };
            let export = if export.is_root() { "no function by itself" } else { &format!("no `{export}`") };
            Some(format!("it exports {export}: it has {names}"))
        }
    })
}

fn function(name: &str, ty: ComponentItem) -> Option<(String, ComponentFunc)> {
    match ty {
        ComponentItem::ComponentFunc(function) => Some((name.to_owned(), function)),
        _ => None,
    }
}

impl Interface {
    fn of(
        component: &Component,
        name: &str,
        index: Option<&ComponentExportIndex>,
        functions: Vec<(String, ComponentFunc)>,
    ) -> Option<Self> {
        if functions.is_empty() {
            return None;
        }
        let mut types = Types::new();
        let function = |(name, function): (String, ComponentFunc)| {
            let signature = types.signature(&function).map_err(|fault| fault.of_function(&name))?;
            let index = component.get_export_index(index, &*name).ok_or("it has an unknown function")?;
            Ok(Function { name: name.into(), index, signature })
        };
        Some(Self { name: name.into(), functions: functions.into_iter().map(function).collect() })
    }
}

impl Callable<'_> {
    /// Calls the function. Returns its answer, or the error for arguments that do not fit.
    async fn call(
        &self,
        store: &mut Store<InstanceState>,
        payload: Bytes,
        room: Room,
    ) -> wasmtime::Result<Result<Bytes, Error>> {
        let Function { signature, .. } = self.function;
        let is_of_bytes = signature.is_of_bytes();
        let arguments = if is_of_bytes {
            if let Some(answer) = self.call_with_bytes(store, &payload).await {
                return answer;
            }
            json::value_of_bytes(&payload, room).map(|value| vec![value])
        } else {
            signature.arguments(&payload, room)
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(Refused::Misfit(misfit)) => return Ok(Err(Error::invalid_argument(misfit))),
            Err(Refused::TooLarge) => {
                let (bytes, allowed) = (payload.len(), room.0);
                let message =
                    format!("the values of {bytes} bytes take more than {allowed} bytes in the host");
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
        let [result] = result;
        let answer = answer(&signature.returns, &result, is_of_bytes);
        Ok(answer.unwrap_or_else(|error| Err(Error::failed(error))))
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
            Returns::Fallible { .. } => return None,
        })
    }
}

/// The answer that a function's result stands for.
fn answer(returns: &Returns, result: &Val, is_of_bytes: bool) -> serde_json::Result<Result<Bytes, Error>> {
    let value = |value: Option<(&Val, &ValueType)>| match value {
        _ if !is_of_bytes => json::written(value).map(Bytes::from),
        Some((Val::List(bytes), _)) => Ok(json::bytes_of(bytes).into()),
        _ => Ok(Bytes::new()),
    };
    let pair = |value: &'_ Option<Box<Val>>, ty: &'_ Option<ValueType>| {
        Some((value.as_deref()?.clone(), ty.as_ref()?.clone()))
    };
    Ok(match (returns, result) {
        (Returns::Nothing, _) => Ok(value(None)?),
        (Returns::Value(ty), result) => Ok(value(Some((result, ty)))?),
        (Returns::Fallible { ok, .. }, Val::Result(Ok(result))) => {
            let pair = pair(result, ok);
            Ok(value(pair.as_ref().map(|(value, ty)| (value, ty)))?)
        }
        (Returns::Fallible { error, .. }, Val::Result(Err(result))) => {
            let pair = pair(result, error);
            Err(json::error_of(pair.as_ref().map(|(value, ty)| (value, ty)))?.into())
        }
        (Returns::Fallible { .. }, _) => Err(Error::failed("the function returned no result")),
    })
}

impl Instance {
    /// Answers the requests to the extension by calling its component's functions, until it is told to stop.
    pub(crate) async fn call_exports(
        &self,
        program: &Program,
        exported: &Exported,
        opened: &Opened,
        store: &mut Store<InstanceState>,
        activity: &Arc<Activity>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let ExtensionConfig { exports, limits, per_call, .. } = &*self.config;
        let room = Room(size(limits.message_size.saturating_mul(VALUES)));
        let served = exports.iter().map(|(contract, export)| (contract, exported.functions(export.as_str())));
        let served: Vec<_> = served.collect();
        // An instance is made in any case, so that a component that has none is not ready.
        let (mut kept, mut first) = (Vec::new(), None);
        if *per_call {
            let mut own = self.store_of_call(program, opened, store, activity)?;
            drop(callable(program, &served, &mut own).await?);
            first = Some(own);
        } else {
            store.set_hostcall_fuel(room.0);
            kept = callable(program, &served, store).await?;
        }
        drop(first);
        for (contract, functions) in &served {
            let names: Vec<_> = functions.iter().map(|function| function.name.to_string()).collect();
            let serving = self.peer.serve(contract.as_str(), &names);
            serving.map_err(|error| NotInstantiated::mark(wasmtime::Error::new(error)))?;
        }
        let mut failures = Failures::default();
        while let Some(message) = next_message(&mut store.as_context_mut()).await? {
            // Answers to what a function has sent without waiting for them.
            let abi::Message::Request(request) = message else { continue };
            let abi::Request { id, operation, payload, .. } = request;
            let place = usize::try_from(operation).unwrap_or(usize::MAX);
            let parent = store.data().delivery.parent(id).map_err(wasmtime::Error::new)?;
            let end = Instant::now() + limits.handler_timeout;
            let exchange = Exchange { head: parent, is_answered: Arc::default(), end };
            store.data_mut().delivery.begin_call(id);
            let answer = if *per_call {
                let own = self.store_of_call(program, opened, store, activity)?;
                match Box::pin(self.in_own_instance(program, own, (&served, place), payload, exchange)).await
                {
                    Ok(answer) => answer,
                    Err(exit) => {
                        self.call_failed(store, id, exit, &mut failures).await;
                        continue;
                    }
                }
            } else {
                store.data_mut().exchange = Some(exchange);
                let answer = match kept.get(place) {
                    Some(function) => function.call(store, payload, room).await?,
                    None => Err(Error::Invalid("an unknown operation".to_owned())),
                };
                store.data_mut().exchange = None;
                answer
            };
            let delivery = &mut store.data_mut().delivery;
            delivery.end_call();
            if let Err(error) = delivery.respond(id, answer) {
                // The answer is larger than a message may be.
                drop(delivery.respond(id, Err(Error::handler(error.code(), &error))));
            }
        }
        failures.say_left_out(&self.output);
        Ok(Ok(()))
    }

    /// Makes the Store for one call. It shares the limits on HTTP with all others.
    fn store_of_call(
        &self,
        program: &Program,
        opened: &Opened,
        #[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "has no HTTP"))] store: &Store<
            InstanceState,
        >,
        activity: &Arc<Activity>,
    ) -> wasmtime::Result<Store<InstanceState>> {
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "has no HTTP"))]
        let mut machine = self.machine_in(opened);
        #[cfg(feature = "http")]
        {
            machine.http = store.data().sandbox.http.as_ref().map(|access| Box::new(access.beside()));
        }
        let mut own = self.new_store(program, machine, opened.net.clone(), activity.clone())?;
        own.set_hostcall_fuel(size(self.config.limits.message_size.saturating_mul(VALUES)));
        Ok(own)
    }

    /// Calls a function in an instance of its own.
    async fn in_own_instance(
        &self,
        program: &Program,
        mut own: Store<InstanceState>,
        (served, place): (&[(&ContractName, &[Function])], usize),
        payload: Bytes,
        exchange: Exchange,
    ) -> Result<Result<Bytes, Error>, Exit> {
        let limits = &self.config.limits;
        let room = Room(size(limits.message_size.saturating_mul(VALUES)));
        let calling = async {
            let functions = callable(program, served, &mut own).await?;
            meter::deliver(&mut own.as_context_mut(), 1)?;
            own.data_mut().exchange = Some(exchange);
            match functions.get(place) {
                Some(function) => function.call(&mut own, payload, room).await,
                None => Ok(Err(Error::Invalid("an unknown operation".to_owned()))),
            }
        };
        let called = calling.await;
        meter::finish(&own);
        called.map_err(|error| Exit::of(Err(error), limits).in_sandbox(&own.data().sandbox))
    }

    /// Notes that the instance of one call has failed. The call is answered, and the extension goes on.
    async fn call_failed(
        &self,
        store: &mut Store<InstanceState>,
        id: u64,
        exit: Exit,
        failures: &mut Failures,
    ) {
        let (time, delivery) = (SystemTime::now(), &mut store.data_mut().delivery);
        delivery.end_call();
        let Some((handling, unanswered)) = delivery.give_up(id) else { return };
        // Exiting is no failure of the host, but the call has no answer.
        let exit = if exit == Exit::Finished { Exit::Failed(Some("it exited".to_owned())) } else { exit };
        let end = InstanceEnd { exit, handling: Some(handling), time, unanswered: Some(unanswered) };
        if failures.take(&self.output) {
            self.signals.notify(Notice::Failed(Box::new(end))).await;
        }
    }
}

/// Makes an instance, and finds its functions: those of each contract, in their order.
async fn callable<'p>(
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

/// The functions of an interface that is imported, with their types. An error says which has none.
fn signatures(
    engine: &Engine,
    interface: &wasmtime::component::types::ComponentInstance,
) -> Result<Vec<(String, Signature)>, String> {
    let mut types = Types::new();
    let mut functions = Vec::new();
    for (name, item) in interface.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(function) => {
                let signature = types.signature(&function).map_err(|fault| fault.of_function(name))?;
                functions.push((name.to_owned(), signature));
            }
            ComponentItem::Type(_) => {}
            _ => return Err(format!("`{}` is no function", harmless(name, 128))),
        }
    }
    Ok(functions)
}
