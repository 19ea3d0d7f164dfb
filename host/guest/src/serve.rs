//! Serves HTTP: takes requests from the extension's inbox, and has each handled by an instance of its component.
//!
//! The instances run in tasks of their own, within the turns and the share of the extension. A failure of one costs its
//! request, and is told to the supervisor; the extension serves on.

use std::{
    future::poll_fn,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::SystemTime,
};

use futures_util::FutureExt;
use http::{Method, Response};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinSet,
    time::Instant,
};
use wasmtime::{AsContextMut, Store};
use wasmtime_wasi_http::p2::{
    bindings::{Proxy, http::types::ErrorCode},
    body::HyperOutgoingBody,
};
use weir_bus::{
    Error, HandlerError, Incoming, Parent, PeerId, Phase, Request, Responder, SpanOrigin, TakeOptions, Taken,
};
use weir_config::ServesHttp;
use weir_metrics::nanoseconds;
use weir_schedule::{Activity, Handoff, InTurn, TimeLimit};

use crate::{
    delivery::{Handling, Unanswered},
    exit::Exit,
    failures::Failures,
    http::{self as exchanges, AnswerSender, HttpAccess, HttpExchange},
    instance::{Instance, InstanceEnd, Opened, worked_too_long},
    instance_state::{Exchange, InstanceState},
    meter,
    program::Program,
    signals::{Notice, Order},
};

/// The operations of a server: the methods that count by themselves, and one for all others.
const OPERATIONS: [&str; 8] = ["get", "head", "post", "put", "delete", "patch", "options", "other"];

/// The operation that a request of this method counts as.
#[must_use]
pub fn http_operation(method: &Method) -> &'static str {
    let is_its =
        |operation: &&str| operation.bytes().map(|it| it.to_ascii_uppercase()).eq(method.as_str().bytes());
    OPERATIONS.into_iter().find(is_its).unwrap_or("other")
}

/// What all requests of a server share.
struct Server {
    instance: Instance,
    program: Arc<Program>,
    opened: Opened,
    http: ServesHttp,
    /// The access to HTTP that all instances have together.
    access: HttpAccess,
    /// Instances that wait for their next request.
    idle: Mutex<Vec<Warm>>,
}

/// An instance between two requests.
struct Warm {
    store: Store<InstanceState>,
    proxy: Proxy,
    activity: Arc<Activity>,
    served: u32,
}

/// A request in hand until its answer begins.
type InHand = Arc<Mutex<Option<Responder>>>;

impl Instance {
    /// Serves until it is told to stop and all requests are done, or the time for that is over.
    pub(crate) async fn serve(self, program: Arc<Program>, opened: Opened, http: ServesHttp) -> InstanceEnd {
        let access = self.http_access(&program);
        let server =
            Arc::new(Server { instance: self, program, opened, http, access, idle: Mutex::default() });
        let exit = match server.begin().await {
            Ok(()) => server.clone().run().await,
            Err(exit) => exit,
        };
        // Nothing is left of the instances before the locks of directories are.
        for warm in std::mem::take(&mut *server.idle.lock()) {
            dropped(warm);
        }
        server.instance.output.report_dropped();
        InstanceEnd::of(exit)
    }
}

impl Server {
    /// Tries whether the component can be instantiated, and says that it serves.
    async fn begin(&self) -> Result<(), Exit> {
        let Instance { config, peer, signals, .. } = &self.instance;
        let (activity, began) = (Arc::new(Activity::new()), Instant::now());
        let mut limit = TimeLimit::new(config.limits.ready_timeout);
        let warm = tokio::select! {
            biased;
            warm = self.in_turn(self.fresh(activity.clone()), activity) => warm,
            () = signals.stopped() => return Err(Exit::Finished),
            () = limit.over() => return Err(Exit::NotReady(config.limits.ready_timeout)),
        }?;
        self.keep(warm);
        if let Some(contract) = config.http_contract() {
            let served = peer.serve(contract.as_str(), &OPERATIONS.map(ToOwned::to_owned));
            served.map_err(|error| Exit::Start { reason: error.to_string(), limit: None })?;
        }
        peer.set_phase_if_up(Phase::Ready);
        signals.notify(Notice::Ready).await;
        self.instance.usage.ready.set(nanoseconds(began.elapsed()));
        Ok(())
    }

    async fn run(self: Arc<Self>) -> Exit {
        let Instance { config, peer, signals, usage, .. } = &self.instance;
        let mut order = signals.order(peer);
        let mut running = JoinSet::new();
        let mut limit = TimeLimit::new(config.limits.stop_timeout);
        let (mut is_stopping, mut failures) = (false, Failures::default());
        loop {
            if is_stopping && running.is_empty() {
                failures.say_left_out(&self.instance.output);
                return Exit::Finished;
            }
            let is_full = running.len() >= usize::try_from(self.http.at_once).unwrap_or(usize::MAX);
            tokio::select! {
                biased;
                order = poll_fn(&mut order), if !is_stopping => if matches!(order, Order::Stop) {
                    is_stopping = true;
                    limit = TimeLimit::new(config.limits.stop_timeout);
                },
                Some(ended) = running.join_next() => {
                    usage.in_hand.set(running.len() as u64);
                    let ended = ended.unwrap_or_else(|error| match error.try_into_panic() {
                        Ok(panic) => Some(InstanceEnd::of(Exit::panicked(&*panic))),
                        Err(_) => None,
                    });
                    if let Some(end) = ended.filter(|_| failures.take(&self.instance.output)) {
                        signals.notify(Notice::Failed(Box::new(end))).await;
                    }
                }
                request = poll_fn(|context| loop {
                    let task = Some(context.waker());
                    let look = TakeOptions { events: false, hold: Some(is_full), counts_abandoned: true, task };
                    match peer.take_with(&look) {
                        Taken::Message(Incoming::Request(request)) => return Poll::Ready(request),
                        // Replies to what handlers sent and did not wait for.
                        Taken::Message(_) => {}
                        Taken::Empty | Taken::Stop => return Poll::Pending,
                    }
                }), if !is_stopping => {
                    running.spawn(Handoff::new(self.clone().exchange(request)));
                    usage.in_hand.set(running.len() as u64);
                }
                () = limit.over(), if is_stopping => {
                    running.shutdown().await;
                    failures.say_left_out(&self.instance.output);
                    return Exit::StopOverdue(config.limits.stop_timeout);
                }
            }
        }
    }

    /// Has one request handled. Returns how the instance ended, if that was a failure.
    async fn exchange(self: Arc<Self>, request: Request) -> Option<InstanceEnd> {
        let Request { payload, responder, .. } = request;
        // Another sender could only guess a ticket.
        let is_from_main = responder.sender() == PeerId::MAIN;
        let exchange = is_from_main.then(|| self.instance.shared.http.exchanges.fetch(&payload)).flatten();
        let Some(exchange) = exchange else {
            responder.give(Err(Error::Invalid("it is reached by HTTP alone".to_owned())));
            return None;
        };
        let HttpExchange { request: http, scheme, answer, mut client } = exchange;
        let handling = Handling {
            message: Some(responder.id()),
            sequence: None,
            sender: responder.sender(),
            operation: format!("{} {}", http.method(), http.uri().path()),
        };
        let trace = responder.span().map(|span| SpanOrigin::within(span.context()));
        let parent = Parent { deadline: Some(responder.term().deadline), trace, counted: 0 };
        let in_hand: InHand = Arc::new(Mutex::new(Some(responder)));
        let is_answered = Arc::<AtomicBool>::default();

        let idle = self.idle.lock().pop();
        let activity = idle.as_ref().map_or_else(|| Arc::new(Activity::new()), |warm| warm.activity.clone());
        let limits = &self.instance.config.limits;
        let end = Instant::now() + limits.handler_timeout;
        let exchange = Exchange { head: parent, is_answered: is_answered.clone(), end };
        let (given, cut_off) = (in_hand.clone(), Arc::new(AtomicBool::new(false)));
        let is_cut_off = cut_off.clone();
        let work = async {
            let mut warm = match idle {
                Some(warm) => warm,
                None => self.fresh(activity.clone()).await?,
            };
            // Dropped before the Store, whose end would make the body look whole.
            let mut guard = CutOff(Some(cut_off));
            warm.served += 1;
            let Warm { store, proxy, .. } = &mut warm;
            meter::deliver(&mut store.as_context_mut(), 1)
                .map_err(|error| Exit::cannot_start(&error, None))?;
            store.data_mut().exchange = Some(exchange);
            let set = move |outcome| {
                is_answered.store(true, Ordering::Release);
                give(&given, answer, outcome, is_cut_off);
            };
            let handled = match exchanges::begin(store.data_mut(), scheme, http, set) {
                Ok((request, answer)) => {
                    proxy.wasi_http_incoming_handler().call_handle(&mut *store, request, answer).await
                }
                Err(error) => Err(error),
            };
            meter::finish(store);
            // Else the end of the Store cuts off what is unfinished.
            if store.data().sandbox.http.as_ref().is_none_or(|access| access.has_finished()) {
                guard.0 = None;
            }
            let has_returned = handled.is_ok();
            let exit = Exit::of(handled.map(Ok), limits).in_sandbox(&store.data().sandbox);
            if exit != Exit::Finished {
                return Err(exit);
            }
            // A guest that has exited is of no further use, nor is one that goes on writing.
            let is_kept = has_returned && guard.0.is_none();
            drop(guard);
            Ok(if is_kept { Some(warm) } else { None })
        };
        let work = AssertUnwindSafe(self.in_turn(work, activity.clone())).catch_unwind();
        let mut limit = TimeLimit::new(limits.handler_timeout);
        let has_all = AtomicBool::new(false);
        let ended = tokio::select! {
            biased;
            // Comes first, because a guest may fail for want of its client.
            () = left(&mut client, &has_all) => return None,
            ended = work => ended.unwrap_or_else(|panic| Err(Exit::panicked(&*panic))),
            exit = poll_fn(|_| worked_too_long(&activity, limits)), if limits.time_per_message.is_some() => Err(exit),
            () = limit.over() => {
                let allowed = limits.handler_timeout;
                Err(Exit::HandlerOverdue { used: allowed, allowed })
            }
        };
        let unanswered = in_hand.lock().take();
        match ended {
            Ok(warm) => {
                if let Some(responder) = unanswered {
                    let error = HandlerError::new("no-answer", "the handler ended without an answer");
                    responder.give(Err(error.into()));
                }
                warm.into_iter().for_each(|warm| self.keep(warm));
                None
            }
            // A client may have all that it wants before the guest has written all, as after HEAD, or have left meanwhile.
            Err(_)
                if has_all.load(Ordering::Relaxed)
                    || !matches!(client.try_recv(), Err(TryRecvError::Empty)) =>
            {
                None
            }
            Err(exit) => {
                let unanswered = Unanswered::new(unanswered.into_iter().collect(), Error::Trapped);
                let (handling, time) = (Some(handling), SystemTime::now());
                Some(InstanceEnd { exit, handling, time, unanswered: Some(unanswered) })
            }
        }
    }

    /// Makes an instance.
    async fn fresh(&self, activity: Arc<Activity>) -> Result<Warm, Exit> {
        let failed = |error: &wasmtime::Error| Exit::cannot_start(error, None);
        let mut machine = self.instance.machine_in(&self.opened);
        machine.http = Some(Box::new(self.access.beside()));
        let store = self.instance.new_store(&self.program, machine, activity.clone());
        let mut store = store.map_err(|error| failed(&error))?;
        match self.program.server(&mut store).await {
            Ok(proxy) => Ok(Warm { store, proxy, activity, served: 0 }),
            Err(error) => {
                meter::finish(&store);
                Err(Exit::of(Err(error), &self.instance.config.limits).in_sandbox(&store.data().sandbox))
            }
        }
    }

    /// Keeps an instance for its next request, or drops it.
    fn keep(&self, warm: Warm) {
        if self.http.requests_per_instance > 1 && warm.served < self.http.requests_per_instance {
            // The work for the last request does not count for the next.
            warm.activity.deliver(0);
            self.idle.lock().push(warm);
            return;
        }
        dropped(warm);
    }

    /// Runs a guest in the turns and within the share of the extension.
    async fn in_turn<T>(&self, guest: impl Future<Output = T>, activity: Arc<Activity>) -> T {
        let Instance { shared, share, usage, .. } = &self.instance;
        InTurn::new(guest, shared.turns.clone(), share.clone(), activity, usage.clone()).among_others().await
    }
}

/// Marks a body as cut off, unless it has been taken out.
struct CutOff(Option<Arc<AtomicBool>>);

impl Drop for CutOff {
    fn drop(&mut self) {
        if let Some(is_cut_off) = &self.0 {
            is_cut_off.store(true, Ordering::Release);
        }
    }
}

/// Waits until the client has left. Notes if it has the whole answer, and then waits for ever.
async fn left(client: &mut oneshot::Receiver<()>, has_all: &AtomicBool) {
    if client.await.is_ok() {
        has_all.store(true, Ordering::Relaxed);
        std::future::pending().await
    }
}

/// Drops an instance. That writes the guest's last output, which may panic.
fn dropped(warm: Warm) {
    let _panicked = panic::catch_unwind(AssertUnwindSafe(|| drop(warm)));
}

/// Passes the head of an answer on, and ends the request.
fn give(
    in_hand: &InHand,
    answer: AnswerSender,
    outcome: Result<Response<HyperOutgoingBody>, ErrorCode>,
    is_cut_off: Arc<AtomicBool>,
) {
    let failed = |code: &str, text: String| Err(Error::from(HandlerError::new(code, text)));
    let outcome = match outcome {
        Ok(response) if response.status().is_informational() => {
            failed("no-answer", format!("the status {} is no answer", response.status()))
        }
        Ok(response) => {
            let status = response.status();
            answer.send(response, is_cut_off);
            // Counted as an error of the server, which the client sees as it is.
            if status.is_server_error() {
                failed("server-error", status.to_string())
            } else {
                Ok(bytes::Bytes::new())
            }
        }
        Err(code) => failed("no-answer", format!("{code:?}")),
    };
    if let Some(responder) = in_hand.lock().take() {
        responder.give(outcome);
    }
}
