//! The functions of `wasi:http`, carried out by [`weir_http`]. They turn a guest's request into one of the crate
//! `http`, and the answer into wasmtime's form for the guest.

use std::{
    future::Future,
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};

use futures_util::future::ready;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use wasmtime::{
    StoreContextMut,
    component::{ComponentType, Lift, Linker, LinkerInstance, Resource, ResourceType},
};
use wasmtime_wasi_http::{
    Error, FieldMap, FieldMapError, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks,
    p2::{
        HeaderResult,
        bindings::{
            LinkOptions,
            http::{
                outgoing_handler::Host,
                types::{
                    self, ErrorCode, HeaderError, HostFields as _, HostOutgoingBody as HostOutgoingBodyCalls,
                    HostOutgoingRequest as _, HostOutgoingResponse as HostOutgoingResponseCalls, Method,
                    Scheme,
                },
            },
        },
        body::{HostIncomingBody, HostOutgoingBody},
        types::{HostOutgoingRequest, HostOutgoingResponse},
    },
};
use weir_config::{HttpGrant, LimitHit, LimitKey, Limits};
use weir_http::{HttpClient, HttpError, HttpGuest, Timeouts};
use weir_metrics::Usage;

use super::{Http, body};
use crate::{
    abi::{Handed, Text},
    exit::OverLimit,
    imports::VERSION,
    memory::size,
    sandbox::Guest,
};

/// How many bytes of a request's body its guest writes at once. As many can wait for the connection.
const CHUNK: usize = 16 << 10;

/// The most bytes of a request's method, and of its scheme.
const METHOD: usize = 32;

/// The most bytes of a request's path in a guest that has no access, because it does not import
/// `wasi:http/outgoing-handler`.
const DEFAULT_PATH: usize = 16 << 10;

/// The most bytes of a request's authority: twice what the longest host name with a port takes.
const AUTHORITY: usize = 512;

/// What one guest may send, and its requests under way.
pub(crate) struct HttpAccess {
    context: WasiHttpCtx,
    outgoing: Outgoing,
    /// The most bytes of a request's path with its query.
    path: usize,
    /// The bodies of answers that the guest has begun and not finished.
    unfinished: Vec<u32>,
}

/// The access of a guest that has been given none: every request is refused.
impl Default for HttpAccess {
    fn default() -> Self {
        Self {
            context: WasiHttpCtx::new(),
            outgoing: Outgoing::default(),
            path: DEFAULT_PATH,
            unfinished: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Outgoing {
    client: Option<HttpClient>,
    /// The latest deadline of the requests that the guest has in hand while it sends.
    deadline: Option<Instant>,
    /// Why the request that the guest sends now is refused.
    refused: Option<ErrorCode>,
}

impl Http {
    /// Returns the access of a guest with these grants. Counts the guest's use in `usage`, and the time of the sender's
    /// thread in `worked`. Calls `say` with a text for each request that is refused or cut off.
    pub(crate) fn access(
        &self,
        grants: &[HttpGrant],
        limits: &Limits,
        usage: &Arc<Usage>,
        worked: Arc<AtomicU64>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> HttpAccess {
        let client = self.sender.as_ref().map(|sender| {
            let guest = HttpGuest { grants: grants.into(), usage: usage.clone(), worked, say: Box::new(say) };
            sender.client(guest, limits)
        });
        HttpAccess::new(client, size(limits.http_header_size))
    }
}

impl HttpAccess {
    fn new(client: Option<HttpClient>, header_size: usize) -> Self {
        let mut context = WasiHttpCtx::new();
        // Headers take Main's memory even if they are never sent. A request with more than the limit fails, and with
        // twice the limit the guest ends.
        context.set_field_size_limit(header_size.saturating_mul(2));
        let outgoing = Outgoing { client, ..Default::default() };
        Self { context, outgoing, path: header_size, unfinished: Vec::new() }
    }

    /// Access for another instance of the same guest. Their limits hold for both together.
    pub(crate) fn beside(&self) -> Self {
        Self::new(self.outgoing.client.as_ref().map(HttpClient::beside), self.path)
    }

    /// Whether the guest has finished the body of each answer that it has begun.
    pub(crate) fn has_finished(&self) -> bool {
        self.unfinished.is_empty()
    }
}

/// Replaces functions of `wasi:http/types`, each given by its name, its arguments and what is done with them. The names
/// before the arguments stand for the Store and for wasmtime-wasi-http's view of it.
macro_rules! replace {
    ($types:ident, $($name:literal => |$store:ident, $view:ident, ($($given:ident: $type:ty),+)| $act:block)+) => {
        $($types.func_wrap($name, |mut $store: StoreContextMut<'_, G>, ($($given,)+): ($($type,)+)| {
            let mut $view = view($store.data_mut());
            $act
        })?;)+
    };
}

/// Replaces functions that would keep a text of any length in Main's memory, with ones that bound it. A guest needs no
/// grant to call them.
fn add_bounded<G: Guest>(types: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    replace!(types,
        "[method]outgoing-request.set-method" =>
        |store, view, (request: Resource<HostOutgoingRequest>, method: GivenMethod)| {
            let Ok(method) = method.try_into() else { return Ok((Err(()),)) };
            Ok((view.set_method(request, method)?,))
        }
        "[method]outgoing-request.set-scheme" =>
        |store, view, (request: Resource<HostOutgoingRequest>, scheme: Option<GivenScheme>)| {
            let Ok(scheme) = scheme.map(TryInto::try_into).transpose() else { return Ok((Err(()),)) };
            Ok((view.set_scheme(request, scheme)?,))
        }
        "[method]outgoing-request.set-authority" =>
        |store, view, (request: Resource<HostOutgoingRequest>, text: Option<Text<AUTHORITY>>)| {
            let Ok(text) = text.map(|text| text.0).transpose() else { return Ok((Err(()),)) };
            Ok((view.set_authority(request, text)?,))
        }
    );
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store: StoreContextMut<'_, G>,
         (request, text): (Resource<HostOutgoingRequest>, Option<Handed<String>>)| {
            let guest = store.data_mut();
            let allowed = guest.sandbox_mut().http.get_or_insert_default().path;
            let mut view = view(guest);
            let Ok(text) = text.map(Handed::whole).transpose() else { return Ok((Err(()),)) };
            let is_long = text.as_ref().is_some_and(|text| text.len() > allowed);
            Ok((if is_long { Err(()) } else { view.set_path_with_query(request, text)? },))
        },
    )?;
    add_fields(types)?;
    add_answers(types)
}

/// Watches the bodies of answers: one that a guest has begun and not finished is not whole, although wasmtime-wasi-http
/// ends it so with the guest.
fn add_answers<G: Guest>(types: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    types.func_wrap(
        "[method]outgoing-response.body",
        |mut store: StoreContextMut<'_, G>, (answer,): (Resource<HostOutgoingResponse>,)| {
            let guest = store.data_mut();
            let body = HostOutgoingResponseCalls::body(&mut view(guest), answer)?;
            if let Ok(body) = &body {
                guest.sandbox_mut().http.get_or_insert_default().unfinished.push(body.rep());
            }
            Ok((body,))
        },
    )?;
    types.resource("outgoing-body", ResourceType::host::<HostOutgoingBody>(), |mut store, rep| {
        let guest = store.data_mut();
        guest.sandbox_mut().http.get_or_insert_default().unfinished.retain(|begun| *begun != rep);
        // A body that is dropped unfinished fails by itself.
        HostOutgoingBodyCalls::drop(&mut view(guest), Resource::new_own(rep))
    })?;
    types.func_wrap(
        "[static]outgoing-body.finish",
        |mut store: StoreContextMut<'_, G>,
         (body, trailers): (Resource<HostOutgoingBody>, Option<Resource<FieldMap>>)| {
            let (guest, rep) = (store.data_mut(), body.rep());
            let finished = match HostOutgoingBodyCalls::finish(&mut view(guest), body, trailers) {
                Ok(()) => Ok(()),
                Err(error) => Err(error.downcast()?),
            };
            guest.sandbox_mut().http.get_or_insert_default().unfinished.retain(|begun| *begun != rep);
            Ok((finished,))
        },
    )
}

/// The name and value of a header, as a guest hands them over.
type Header = (String, Vec<u8>);

/// Replaces the functions for headers. A name that is too long for a call is found in no headers. Such a name or value
/// is refused where it is to be added or deleted.
fn add_fields<G: Guest>(types: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    replace!(types,
        "[static]fields.from-list" => |store, view, (entries: Handed<Vec<Header>>)| {
            let Handed::Whole(entries) = entries else { return Ok((Err(HeaderError::InvalidSyntax),)) };
            let bytes = entries.iter().map(|(name, value)| held(name.len(), value.len())).sum();
            let made = view.from_list(entries);
            added(store.data_mut(), None, bytes, made)
        }
        "[method]fields.get" => |store, view, (fields: Resource<FieldMap>, name: Text)| {
            let Ok(name) = name.0 else { return Ok((Vec::new(),)) };
            Ok((view.get(fields, name)?,))
        }
        "[method]fields.has" => |store, view, (fields: Resource<FieldMap>, name: Text)| {
            let Ok(name) = name.0 else { return Ok((false,)) };
            Ok((view.has(fields, name)?,))
        }
        "[method]fields.set" =>
        |store, view, (fields: Resource<FieldMap>, name: Text, values: Handed<Vec<Vec<u8>>>)| {
            let (Ok(name), Ok(values)) = (name.0, values.whole()) else {
                return Ok((Err(HeaderError::InvalidSyntax),));
            };
            let (id, bytes) = (fields.rep(), values.iter().map(|value| held(name.len(), value.len())).sum());
            let set = view.set(fields, name, values);
            added(store.data_mut(), Some(id), bytes, set)
        }
        "[method]fields.delete" => |store, view, (fields: Resource<FieldMap>, name: Text)| {
            let Ok(name) = name.0 else { return Ok((Err(HeaderError::InvalidSyntax),)) };
            done(view.delete(fields, name))
        }
        "[method]fields.append" =>
        |store, view, (fields: Resource<FieldMap>, name: Text, value: Handed<Vec<u8>>)| {
            let (Ok(name), Ok(value)) = (name.0, value.whole()) else {
                return Ok((Err(HeaderError::InvalidSyntax),));
            };
            let (id, bytes) = (fields.rep(), held(name.len(), value.len()));
            let appended = view.append(fields, name, value);
            added(store.data_mut(), Some(id), bytes, appended)
        }
    );
    Ok(())
}

/// Turns the outcome of a call into what wasmtime takes: a value or error for the guest, or a trap.
fn done<T>(result: HeaderResult<T>) -> wasmtime::Result<(Result<T, HeaderError>,)> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// Returns what became of a call that adds `bytes` to headers. Headers may exceed the limit, and fail when they are
/// sent. If they exceed wasmtime's own bound, the guest ends with the error that counts all these bytes.
fn added<G: Guest, T>(
    guest: &mut G,
    fields: Option<u32>,
    bytes: u64,
    result: HeaderResult<T>,
) -> wasmtime::Result<(Result<T, HeaderError>,)> {
    let is_too_much = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(FieldMapError::TotalSizeTooBig))
    };
    let result = done(result);
    if !result.as_ref().is_err_and(|error| error.chain().any(is_too_much)) {
        return result;
    }
    let sandbox = guest.sandbox_mut();
    let there: u64 = match fields {
        None => 0,
        Some(id) => {
            let fields = sandbox.table.get(&Resource::<FieldMap>::new_borrow(id))?;
            fields.iter().map(|(name, value)| held(name.as_str().len(), value.len())).sum()
        }
    };
    let allowed = sandbox.http.get_or_insert_default().path as u64;
    Err(OverLimit(LimitHit::new(LimitKey::HTTP_HEADER_SIZE, there + bytes, allowed)).into())
}

/// Returns the bytes of Main's memory that a header with a name and value of these lengths takes, as
/// wasmtime-wasi-http counts them.
fn held(name: usize, value: usize) -> u64 {
    (name + size_of::<HeaderName>() + value + size_of::<HeaderValue>()) as u64
}

/// A method as a guest hands it over.
#[derive(ComponentType, Lift)]
#[component(variant)]
enum GivenMethod {
    #[component(name = "get")]
    Get,
    #[component(name = "head")]
    Head,
    #[component(name = "post")]
    Post,
    #[component(name = "put")]
    Put,
    #[component(name = "delete")]
    Delete,
    #[component(name = "connect")]
    Connect,
    #[component(name = "options")]
    Options,
    #[component(name = "trace")]
    Trace,
    #[component(name = "patch")]
    Patch,
    #[component(name = "other")]
    Other(Text<METHOD>),
}

impl TryFrom<GivenMethod> for Method {
    type Error = u64;

    fn try_from(method: GivenMethod) -> Result<Self, u64> {
        Ok(match method {
            GivenMethod::Get => Self::Get,
            GivenMethod::Head => Self::Head,
            GivenMethod::Post => Self::Post,
            GivenMethod::Put => Self::Put,
            GivenMethod::Delete => Self::Delete,
            GivenMethod::Connect => Self::Connect,
            GivenMethod::Options => Self::Options,
            GivenMethod::Trace => Self::Trace,
            GivenMethod::Patch => Self::Patch,
            GivenMethod::Other(name) => Self::Other(name.0?),
        })
    }
}

/// A scheme as a guest hands it over.
#[derive(ComponentType, Lift)]
#[component(variant)]
enum GivenScheme {
    #[component(name = "HTTP")]
    Http,
    #[component(name = "HTTPS")]
    Https,
    #[component(name = "other")]
    Other(Text<METHOD>),
}

impl TryFrom<GivenScheme> for Scheme {
    type Error = u64;

    fn try_from(scheme: GivenScheme) -> Result<Self, u64> {
        Ok(match scheme {
            GivenScheme::Http => Self::Http,
            GivenScheme::Https => Self::Https,
            GivenScheme::Other(name) => Self::Other(name.0?),
        })
    }
}

/// Adds the interfaces of `wasi:http` for sending to the linker.
pub(crate) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    types::add_to_linker::<G, WasiHttp>(linker, &(&LinkOptions::default()).into(), |guest| view(guest))?;
    let mut types = linker.instance(&format!("wasi:http/types@{VERSION}"))?;
    add_bounded(&mut types)?;
    types.func_wrap(
        "[method]incoming-body.stream",
        |mut store: StoreContextMut<'_, G>, (id,): (Resource<HostIncomingBody>,)| {
            Ok((body::stream(view(store.data_mut()).table, &id)?,))
        },
    )?;
    // `handle` is written by hand, because it asks the guest's state for the deadline.
    linker.instance(&format!("wasi:http/outgoing-handler@{VERSION}"))?.func_wrap(
        "handle",
        |mut store: StoreContextMut<'_, G>,
         (request, options): (Resource<HostOutgoingRequest>, Option<Resource<RequestOptions>>)| {
            let guest = store.data_mut();
            let deadline = guest.deadline_in_hand();
            guest.sandbox_mut().http.get_or_insert_default().outgoing.deadline = deadline;
            let future = match view(guest).handle(request, options) {
                Ok(future) => Ok(future),
                Err(error) => Err(error.downcast()?),
            };
            // A refusal is returned at once. Otherwise a library that still writes the body would see only that the
            // write fails, and not why.
            let sandbox = guest.sandbox_mut();
            let refused = sandbox.http.get_or_insert_default().outgoing.refused.take();
            Ok((match (future, refused) {
                (Ok(future), Some(refused)) => {
                    sandbox.table.delete(future)?;
                    Err(refused)
                }
                (future, _) => future,
            },))
        },
    )
}

/// Returns wasmtime-wasi-http's part of the Store, and charges for the call.
pub(super) fn view<G: Guest>(guest: &mut G) -> WasiHttpCtxView<'_> {
    let sandbox = guest.sandbox_mut();
    sandbox.meter.enter_wasi();
    let HttpAccess { context, outgoing, .. } = &mut **sandbox.http.get_or_insert_default();
    WasiHttpCtxView { hooks: outgoing, table: &mut sandbox.table, ctx: context }
}

type Answer = Response<WasiBody>;
type AfterAnswer = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Answering = Box<dyn Future<Output = Result<(Answer, AfterAnswer), Error>> + Send>;

impl WasiHttpHooks for Outgoing {
    /// False, because the sender sets the header `host` itself, in one notation.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _fails: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Answering {
        let Some(client) = &self.client else {
            self.refused = Some(ErrorCode::HttpRequestDenied);
            return Box::new(ready(Err(Error::HttpRequestDenied)));
        };
        let options = options.unwrap_or_default();
        let timeouts = Timeouts {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
            deadline: self.deadline.take(),
        };
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        match client.send(request, timeouts) {
            Ok(answer) => Box::new(async move {
                let answer = answer.await.map_err(code)?;
                let nothing: AfterAnswer = Box::new(ready(Ok(())));
                Ok((answer.map(|body| body.map_err(code).boxed_unsync()), nothing))
            }),
            Err(error) => {
                self.refused = Some(match &error {
                    HttpError::Uri(_) => ErrorCode::HttpRequestUriInvalid,
                    HttpError::RequestHeaders { size, .. } => {
                        ErrorCode::HttpRequestHeaderSectionSize(u32::try_from(*size).ok())
                    }
                    HttpError::TooMany => ErrorCode::ConnectionLimitReached,
                    _ => ErrorCode::HttpRequestDenied,
                });
                Box::new(ready(Err(code(error))))
            }
        }
    }
}

/// Returns the error of `wasi:http` for an error of the sender.
fn code(error: HttpError) -> Error {
    match error {
        HttpError::Denied(_) => Error::HttpRequestDenied,
        HttpError::Uri(_) => Error::HttpRequestUriInvalid,
        HttpError::RequestHeaders { size, .. } => {
            Error::HttpRequestHeaderSectionSize(u32::try_from(size).ok())
        }
        HttpError::ResponseHeaders => Error::HttpResponseHeaderSectionSize(None),
        HttpError::TooMany => Error::ConnectionLimitReached,
        HttpError::DnsTimeout => Error::DnsTimeout,
        HttpError::Dns(why) => Error::DnsError { rcode: Some(why), info_code: None },
        HttpError::AddressProhibited(_) => Error::DestinationIpProhibited,
        HttpError::ConnectionRefused => Error::ConnectionRefused,
        HttpError::Unreachable(_) => Error::DestinationIpUnroutable,
        HttpError::ConnectTimeout => Error::ConnectionTimeout,
        HttpError::ResponseTimeout => Error::ConnectionReadTimeout,
        HttpError::TotalTimeout => Error::HttpResponseTimeout,
        HttpError::ResponseIncomplete => Error::HttpResponseIncomplete,
        HttpError::Certificate(_) => Error::TlsCertificateError,
        HttpError::TlsAlert(alert) => Error::TlsAlertReceived { alert_id: None, alert_message: Some(alert) },
        HttpError::Tls(_) => Error::TlsProtocolError,
        HttpError::Upgraded => Error::HttpUpgradeFailed,
        HttpError::RequestBody => Error::HttpRequestBodySize(None),
        HttpError::Configuration(_) => Error::ConfigurationError,
        HttpError::Protocol(_) => Error::HttpProtocolError,
        HttpError::ConnectionTerminated => Error::ConnectionTerminated,
    }
}
