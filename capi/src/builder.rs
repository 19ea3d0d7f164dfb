//! Main before its start.

use std::{ffi::c_void, path::PathBuf};

use weir_host::{
    Builder, Config, Error, HandlerError, Main, MainConfig, Service,
    blocking::{wait, wait_for},
    component::Compilation,
    names::{ContractName, NameError, OperationName},
    service::{Answer, ServedRequest},
};

use crate::{
    c::{Callback, ErrorOut, Text, given, run, run_infallible, weir_drop},
    config::weir_config,
    error::weir_error,
    events::{self, OnMainEvent, weir_on_main_event},
    request::{unanswered, weir_handler, weir_request},
    running::weir_main,
    work::{self, Work},
};

/// A Main before its start. One thread at a time may use it. `weir_builder_start` takes it; else free it with
/// `weir_builder_free`.
#[derive(Debug)]
pub struct weir_builder {
    config: Config,
    compilation: Compilation,
    services: Vec<Service>,
    on_event: Vec<Callback<OnMainEvent>>,
    sockets: Option<Sockets>,
}

/// Begins to set up a Main. Takes `config`, even if this function fails. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_new(
    config: Option<Box<weir_config>>,
    error: ErrorOut,
) -> Option<Box<weir_builder>> {
    run(error, || {
        let weir_config(config) = *given(config, "config")?;
        let (compilation, services, on_event) = (Compilation::default(), Vec::new(), Vec::new());
        Ok(Some(Box::new(weir_builder { config, compilation, services, on_event, sockets: None })))
    })
}

/// Serves an operation of a contract from this program. Call it once for each operation.
///
/// `handler` runs on Main's thread, `weir-main`, and must not wait: until it returns, all extensions wait. It may keep
/// the request, and any thread may answer it later. A contract has 256 requests at once in hand; further ones wait. At
/// the deadline, or if the caller gives up, the request leaves this number, although the program still has it.
///
/// An extension that fulfils the contract takes precedence. A second handler of an operation replaces the first.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if a name is malformed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_serve(
    builder: Option<&mut weir_builder>,
    contract: Text,
    operation: Text,
    handler: weir_handler,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> bool {
    let handler = Callback::new(handler, data, drop);
    run(error, || {
        let (contract, operation) = names(&contract, &operation)?;
        let (handler, called) = (handler?, format!("{contract} {operation}"));
        let handler = move |served: ServedRequest| {
            let answer = weir_request::hand_over(served, &called, &handler);
            async move { answer.await.unwrap_or_else(|_freed| unanswered()) }
        };
        given(builder, "builder")?.add(contract, |service| service.on(operation, handler));
        Ok(true)
    })
}

/// Serves an operation of a contract from this program, like `weir_builder_serve`, by a handler that may wait.
/// `handler` runs on a thread of Main's pool, on several at once. If it returns without an answer, its thread waits for
/// the answer until the deadline.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if a name is malformed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_serve_blocking(
    builder: Option<&mut weir_builder>,
    contract: Text,
    operation: Text,
    handler: weir_handler,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> bool {
    let handler = Callback::new(handler, data, drop);
    run(error, || {
        let (contract, operation) = names(&contract, &operation)?;
        let (handler, called) = (handler?, format!("{contract} {operation}"));
        let handler = move |served: ServedRequest| -> Answer {
            let asked = served.clone();
            let answer = weir_request::hand_over(served, &called, &handler);
            match wait_for(asked.remaining(), answer) {
                Ok(Some(Ok(answer))) => answer,
                Ok(Some(Err(_freed))) => unanswered(),
                // By then, the caller has got its own timeout.
                Ok(None) | Err(_) => Err(HandlerError::new("timeout", "there was no answer in time")),
            }
        };
        given(builder, "builder")?.add(contract, |service| service.on_blocking(operation, handler));
        Ok(true)
    })
}

/// Calls `callback` for states, failures and losses, from before the first extension starts until Main has ended. It
/// runs on Main's thread and must not wait. Call this function again for further callbacks.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `builder` or `callback` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_on_event(
    builder: Option<&mut weir_builder>,
    callback: weir_on_main_event,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> bool {
    let callback = Callback::new(callback, data, drop);
    run(error, || {
        given(builder, "builder")?.on_event.push(callback?);
        Ok(true)
    })
}

/// Compiles each component in a process of its own, which bounds its time and memory, and is confined to its input and
/// output as far as the machine has the means. Use it for components that others made. `program` is the absolute path of
/// `weir-compile-helper`, of this version of Weir. Without this call, Main compiles in its own process.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the path is not absolute, or this library has no compiler.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_compile_in_child(
    builder: Option<&mut weir_builder>,
    program: Text,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let program = PathBuf::from(program.get("program")?);
        if !program.is_absolute() {
            let message = format!("`{}` is not an absolute path", program.display());
            return Err(weir_error::argument(message));
        }
        given(builder, "builder")?.compilation = in_child(program)?;
        Ok(true)
    })
}

#[cfg(feature = "compiler")]
fn in_child(program: PathBuf) -> Result<Compilation, weir_error> {
    Ok(Compilation::Child { program, arguments: Vec::new() })
}

#[cfg(not(feature = "compiler"))]
fn in_child(_program: PathBuf) -> Result<Compilation, weir_error> {
    let why = weir_host::config::not_in_this_build("compiler");
    Err(weir_error::argument(format!("compiling {why}")))
}

/// Compiles nothing: only artifacts run that were compiled elsewhere and signed. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `builder` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_precompiled_only(builder: Option<&mut weir_builder>, error: ErrorOut) -> bool {
    run(error, || {
        given(builder, "builder")?.compilation = Compilation::PrecompiledOnly;
        Ok(true)
    })
}

/// Opens the sockets of the configuration: the control socket, through which the command `weir` reaches Main, and the peer
/// socket, if there is one. Main serves them from its start. Otherwise it has neither, whatever the configuration says. A
/// later change of their paths takes another Main.
///
/// Errors: `WEIR_ERROR_KIND_START` if a socket cannot be opened, as where another Main has it.
/// `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the library was built without the feature `sockets`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_open_sockets(builder: Option<&mut weir_builder>, error: ErrorOut) -> bool {
    run(error, || {
        let builder = given(builder, "builder")?;
        builder.sockets = Some(Sockets::open(&builder.config.main)?);
        Ok(true)
    })
}

/// Starts Main, and waits until each extension that starts with it is ready or has failed. Takes `builder`, also if it
/// fails. An extension that does not start is no error: ask `weir_extensions`, or listen with `weir_builder_on_event`.
/// Blocks: not in a callback on Main's thread.
///
/// From here on, Main handles SIGSEGV, SIGILL and SIGFPE. Install handlers of your own before.
///
/// Errors: `WEIR_ERROR_KIND_CONFIG` if the configuration contradicts itself, `WEIR_ERROR_KIND_START` if Main cannot run.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_start(
    builder: Option<Box<weir_builder>>,
    error: ErrorOut,
) -> Option<Box<weir_main>> {
    run(error, || {
        let weir_builder { config, compilation, services, on_event, sockets } = *given(builder, "builder")?;
        let (work, queue) = Work::new();
        let mut builder = Main::builder(config).compilation(compilation);
        for callback in on_event {
            builder = builder.attach(move |attached| events::listen(attached, callback));
        }
        builder = builder.attach(move |attached| work::run(attached, queue));
        if let Some(sockets) = sockets {
            builder = sockets.attach(builder);
        }
        builder = services.into_iter().fold(builder, |builder, service| builder.serve(service));
        Ok(Some(Box::new(weir_main::new(wait(builder.start())?, work))))
    })
}

/// Frees a builder that was not started. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_builder_free(builder: Option<Box<weir_builder>>) {
    run_infallible(|| drop(builder));
}

impl weir_builder {
    /// Adds an operation to the service of the contract, which is made with its first operation.
    fn add(&mut self, contract: ContractName, add: impl FnOnce(Service) -> Service) {
        let place = self.services.iter().position(|service| *service.contract() == contract);
        let service = match place {
            Some(place) => self.services.swap_remove(place),
            None => Service::new(contract),
        };
        self.services.push(add(service));
    }
}

fn names(contract: &Text, operation: &Text) -> Result<(ContractName, OperationName), weir_error> {
    let (contract, operation) = (contract.get("contract")?, operation.get("operation")?);
    let wrong = |error: NameError| Error::Invalid(error.to_string());
    Ok((contract.parse().map_err(wrong)?, operation.parse().map_err(wrong)?))
}

/// Opened sockets, which Main serves from its start.
#[cfg(feature = "sockets")]
#[derive(Debug)]
pub(crate) struct Sockets {
    control: weir_control::ControlSocket,
    peers: Option<weir_peer_socket::PeerSocket>,
}

#[cfg(feature = "sockets")]
impl Sockets {
    pub(crate) fn open(config: &MainConfig) -> Result<Self, weir_error> {
        let control = weir_control::ControlSocket::bind(&config.control_socket)?;
        let peers = config.peer_socket.as_deref().map(weir_peer_socket::PeerSocket::bind).transpose()?;
        Ok(Self { control, peers })
    }

    pub(crate) fn attach(self, builder: Builder) -> Builder {
        let Self { control, peers } = self;
        let builder = builder.attach(|attached| control.serve(attached));
        match peers {
            Some(peers) => builder.attach(|attached| peers.serve(attached)),
            None => builder,
        }
    }
}

#[cfg(feature = "sockets")]
impl From<weir_control::SocketError> for weir_error {
    fn from(error: weir_control::SocketError) -> Self {
        Self::cannot_start(&error)
    }
}

/// Sockets of a build that has none: no value of this type can be made.
#[cfg(not(feature = "sockets"))]
#[derive(Debug)]
pub(crate) enum Sockets {}

#[cfg(not(feature = "sockets"))]
impl Sockets {
    pub(crate) fn open(_config: &MainConfig) -> Result<Self, weir_error> {
        let why = weir_host::config::not_in_this_build("sockets");
        Err(weir_error::argument(format!("the control socket {why}")))
    }

    pub(crate) fn attach(self, _builder: Builder) -> Builder {
        match self {}
    }
}
