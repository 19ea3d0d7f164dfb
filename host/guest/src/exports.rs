//! Components that export functions: the host takes the requests to an extension, and calls the function of each.
//!
//! The guest knows nothing of messages. What a program's `main` does, the host does here in its place: it declares the
//! operations, waits for requests, and answers them. So limits, deadlines, failures and restarts are those of a program.

mod callable;
mod describe;
mod imports;
mod json;
mod read;
#[cfg(test)]
mod tests;
mod types;
mod values;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use tokio::time::Instant;
use wasmtime::{
    AsContextMut, Store,
    component::{
        Component, ComponentExportIndex,
        types::{ComponentFunc, ComponentItem},
    },
};
use wasmtime_wasi::I32Exit;
use weir_bus::{Carried, Error, ValueTypes};
use weir_config::{ExtensionConfig, InterfaceName};
use weir_names::{ContractName, harmless};
use weir_schedule::{Activity, TimeLimit, end_slice};

#[cfg(feature = "compiler")]
pub(crate) use self::describe::to_be_compiled;
pub(crate) use self::types::Types;
use self::{callable::callable, types::Signature};
pub(crate) use self::{
    describe::{DescribedInterface, interfaces},
    imports::link_import,
};
use crate::{
    abi,
    exit::{Exit, NotInstantiated},
    failures::Failures,
    imports::{give, next_message},
    instance::{Instance, InstanceEnd, Opened},
    instance_state::{Exchange, InstanceState},
    meter,
    program::Program,
    signals::Notice,
};

/// Bytes that the values of a call may take in the host, at 32 a value. So many are made or read in some tens of
/// milliseconds, in which nothing else runs.
const ROOM: usize = 8 << 20;

/// The most functions of one interface, as of the operations of one contract.
const MAX_FUNCTIONS: usize = 256;

/// The most names in a message.
const MAX_LISTED: usize = 8;

/// The interfaces that a component exports.
#[derive(Debug)]
pub(crate) struct Exported {
    interfaces: Box<[Interface]>,
    /// Bytes that they take.
    pub(crate) bytes: usize,
}

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
    signature: Arc<Signature>,
}

impl Exported {
    /// The interfaces of a component with functions, without WASI's.
    pub(crate) fn of(component: &Component) -> Self {
        let engine = component.engine();
        let ty = component.component_type();
        let (mut types, mut interfaces, mut root) = (Types::new(), Vec::new(), Vec::new());
        for (name, item) in ty.exports(engine) {
            match item.ty {
                ComponentItem::ComponentInstance(instance) if !name.starts_with("wasi:") => {
                    let Some(index) = component.get_export_index(None, name) else { continue };
                    let functions =
                        instance.exports(engine).filter_map(|(name, item)| function(name, item.ty));
                    let functions = functions.collect();
                    interfaces.extend(Interface::of(component, name, Some(&index), functions, &mut types));
                }
                ty => root.extend(function(name, ty)),
            }
        }
        interfaces.extend(Interface::of(component, "*", None, root, &mut types));
        Self { interfaces: interfaces.into(), bytes: types.bytes() }
    }

    /// Whether there is none.
    #[cfg(feature = "compiler")]
    pub(crate) fn is_empty(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// What speaks against these exports.
    pub(crate) fn misfit(&self, exports: &BTreeMap<ContractName, InterfaceName>) -> Option<String> {
        let known = |it: &Interface| (it.name.to_string(), it.functions.as_ref().err().cloned());
        misfit(exports, || self.interfaces.iter().map(known))
    }

    fn functions(&self, name: &str) -> &[Function] {
        let interface = self.interfaces.iter().find(|interface| *interface.name == *name);
        interface.and_then(|it| it.functions.as_deref().ok()).unwrap_or_default()
    }
}

/// What speaks against exports, judged by the interfaces that a component exports, each with what speaks against it.
pub(crate) fn misfit<I: Iterator<Item = (String, Option<String>)>>(
    exports: &BTreeMap<ContractName, InterfaceName>,
    known: impl Fn() -> I,
) -> Option<String> {
    exports.values().find_map(|export| match known().find(|(name, _)| *name == export.as_str()) {
        Some((_, None)) => None,
        Some((_, Some(why))) => Some(format!("its export `{export}` cannot be called, because {why}")),
        None => {
            let names = known().take(MAX_LISTED).map(|(name, _)| format!("`{}`", harmless(&name, 256)));
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
        types: &mut Types,
    ) -> Option<Self> {
        if functions.is_empty() {
            return None;
        }
        if functions.len() > MAX_FUNCTIONS {
            return Some(Self { name: name.into(), functions: Err(too_many(functions.len())) });
        }
        let function = |(name, function): (String, ComponentFunc)| {
            let signature = types.signature(&name, &function).map_err(|fault| fault.of_function(&name))?;
            let index = component.get_export_index(index, &*name).ok_or("it has an unknown function")?;
            Ok(Function { name: name.into(), index, signature: Arc::new(signature) })
        };
        Some(Self { name: name.into(), functions: functions.into_iter().map(function).collect() })
    }
}

/// What speaks against an interface with so many functions.
fn too_many(functions: usize) -> String {
    format!("it has {functions} functions, of at most {MAX_FUNCTIONS}")
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
        let served = exports.iter().map(|(contract, export)| (contract, exported.functions(export.as_str())));
        let served: Vec<_> = served.collect();
        // An instance is made in any case, so that a component that has none is not ready.
        let mut kept = Vec::new();
        if *per_call {
            let mut own = self.store_of_call(program, opened, store, activity)?;
            drop(callable(program, &served, &mut own).await?);
        } else {
            kept = callable(program, &served, store).await?;
        }
        for (contract, functions) in &served {
            let names: Vec<_> = functions.iter().map(|function| function.name.to_string()).collect();
            let serving = self.peer.serve(contract.as_str(), &names);
            serving.map_err(|error| NotInstantiated::mark(wasmtime::Error::new(error)))?;
        }
        let functions = served.iter().flat_map(|(_, functions)| functions.iter());
        self.peer.take_values(functions.map(|function| function.signature.clone() as ValueTypes));
        store.data_mut().delivery.takes_values = true;
        let mut failures = Failures::default();
        loop {
            // A guest yields after its slice. What the host does in its place must not go on for longer either.
            if activity.elapsed() >= meter::TIME {
                end_slice().await;
            }
            let request = match next_message(&mut store.as_context_mut()).await? {
                None => break,
                Some(abi::Message::Request(request)) => request,
                // Answers to what a function has sent without waiting for them.
                Some(_) => continue,
            };
            let abi::Request { id, operation, payload, .. } = request;
            let place = usize::try_from(operation).unwrap_or(usize::MAX);
            let parent = store.data().delivery.parent(id).map_err(wasmtime::Error::new)?;
            let carried = store.data_mut().delivery.carried(id, payload);
            let end = Instant::now() + limits.handler_timeout;
            let exchange = Exchange { head: parent, is_answered: Arc::default(), end };
            let (answer, elsewhere) = if *per_call {
                let own = self.store_of_call(program, opened, store, activity)?;
                let call = self.in_own_instance(program, own, (&served, place), carried, exchange);
                match Box::pin(call).await {
                    Ok(answered) => answered,
                    Err(exit) => {
                        self.call_failed(store, id, exit, &mut failures).await;
                        continue;
                    }
                }
            } else {
                store.data_mut().exchange = Some(exchange);
                store.data_mut().delivery.begin_call(id);
                let answer = match kept.get(place) {
                    Some(function) => function.call(store, carried).await,
                    None => Ok(Err(unknown_operation())),
                };
                let answer = match answer {
                    Ok(answer) => answer,
                    // With a request in hand, an exit is a failure, whatever its code says.
                    Err(error) if error.is::<I32Exit>() => {
                        store.data_mut().fault.get_or_insert_with(|| format!("in a call: {error:#}"));
                        return Ok(Err(()));
                    }
                    Err(error) => return Err(error),
                };
                store.data_mut().exchange = None;
                store.data().delivery.end_call();
                (answer, 0)
            };
            let store = &mut store.as_context_mut();
            if let Err(error) = give(store, id, answer, elsewhere) {
                // The answer is larger than a message may be.
                drop(give(store, id, Err(Error::handler(error.code(), &error)), elsewhere));
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
        self.new_store(program, machine, activity.clone())
    }

    /// Calls a function in an instance of its own. Also returns the fuel that it used.
    async fn in_own_instance(
        &self,
        program: &Program,
        mut own: Store<InstanceState>,
        (served, place): (&[(&ContractName, &[Function])], usize),
        carried: Carried,
        exchange: Exchange,
    ) -> Result<(Result<Bytes, Error>, u64), Exit> {
        let (limits, began) = (&self.config.limits, AtomicU64::new(0));
        let calling = async {
            let functions = callable(program, served, &mut own).await?;
            meter::deliver(&mut own.as_context_mut(), 1)?;
            began.store(meter::used(&own.as_context_mut()), Ordering::Relaxed);
            own.data_mut().exchange = Some(exchange);
            match functions.get(place) {
                Some(function) => function.call(&mut own, carried).await,
                None => Ok(Err(unknown_operation())),
            }
        };
        let mut limit = TimeLimit::new(limits.handler_timeout);
        let called = tokio::select! {
            biased;
            called = calling => called,
            () = limit.over() => {
                meter::finish(&own);
                let allowed = limits.handler_timeout;
                return Err(Exit::HandlerOverdue { used: allowed, allowed });
            }
        };
        meter::finish(&own);
        let used = meter::used(&own.as_context_mut()).saturating_sub(began.into_inner());
        let fault = own.data_mut().fault.take();
        let answer = called.map_err(|error| match (Exit::of(Err(error), limits), fault) {
            (Exit::Finished | Exit::Failed(_), Some(fault)) => Exit::Failed(Some(fault)),
            (exit, _) => exit.in_sandbox(&own.data().sandbox),
        })?;
        Ok((answer, used))
    }

    /// Notes that the instance of one call has failed. The call is answered, and the extension goes on.
    async fn call_failed(
        &self,
        store: &mut Store<InstanceState>,
        id: u64,
        exit: Exit,
        failures: &mut Failures,
    ) {
        let time = SystemTime::now();
        let Some((handling, unanswered)) = store.data_mut().delivery.give_up(id) else { return };
        // Exiting is no failure of the host, but the call has no answer.
        let exit = if exit == Exit::Finished { Exit::Failed(Some("it exited".to_owned())) } else { exit };
        let end = InstanceEnd { exit, handling: Some(handling), time, unanswered: Some(unanswered) };
        if failures.take(&self.output) {
            self.signals.notify(Notice::Failed(Box::new(end))).await;
        }
    }
}

fn unknown_operation() -> Error {
    Error::Invalid("an unknown operation".to_owned())
}
