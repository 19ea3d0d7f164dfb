//! Sessions: parts of the program that act under names with grants of their own.

use std::{collections::HashMap, ffi::c_void, sync::Arc};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::task::coop::{consume_budget, unconstrained};
use weir_host::{
    Error,
    names::ContractName,
    peers::{PeerMessage, PeerRequest, Peers, Session, Wanted},
};

use crate::{
    c::{Callback, ErrorOut, Text, given, run, weir_drop},
    error::weir_error,
    request::{OnRequest, unanswered, weir_handler, weir_request},
    running::weir_main,
    work::Work,
};

/// Begins a session under a name of the configuration, `[peer."NAME"]`, with its grants and limits. The handle is one of
/// Main under this name: with it the program calls, publishes, subscribes, puts and takes as the peer. Functions that
/// steer Main or tell of it fail with `WEIR_ERROR_KIND_PERMISSION_DENIED`. Free it with `weir_main_free`, which ends the
/// session. Any thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_PERMISSION_DENIED` if no peer has this name, `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if it has as
/// many sessions as its `limits.sessions`, `WEIR_ERROR_KIND_ENDED`. Once the session has ended, because a reload took the
/// name away or an operator ended it, the functions fail with `WEIR_ERROR_KIND_PEER_GONE`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_session_open(
    main: Option<&weir_main>,
    name: Text,
    error: ErrorOut,
) -> Option<Box<weir_main>> {
    run(error, || {
        let main = given(main, "main")?;
        let session = main.peers()?.open(name.get("name")?)?;
        let client = session.client().clone();
        let (session, peers) = (session.into(), main.peers()?.clone());
        let held = Held { session, peers, handlers: Arc::default(), is_serving: Mutex::new(false) };
        Ok(Some(Box::new(weir_main::of_session(client, main.work.clone(), held))))
    })
}

/// Serves a contract in a session from now on: extensions that require it start. `operations` are the names of its
/// operations with a space between them; `handler` gets the requests to all of them, as with `weir_builder_serve`. Any
/// thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_PERMISSION_DENIED` without a grant, `WEIR_ERROR_KIND_INVALID` if a name is malformed or the
/// contract is served already, `WEIR_ERROR_KIND_PEER_GONE` after the end of the session, and for the first call
/// `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of `weir_call_async` and the like are under way.
#[unsafe(no_mangle)]
pub extern "C" fn weir_session_serve(
    session: Option<&weir_main>,
    contract: Text,
    operations: Text,
    handler: weir_handler,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> bool {
    let handler = Callback::new(handler, data, drop);
    run(error, || {
        let handle = given(session, "session")?;
        let (contract, operations) = (contract.get("contract")?, operations.get("operations")?);
        let operations: Vec<_> = operations.split(' ').map(str::to_owned).collect();
        handle.session()?.serve(&handle.work, contract, &operations, handler?)?;
        Ok(true)
    })
}

/// The most requests that a session has in hand. Further ones wait.
const IN_HAND: usize = 256;

type Handlers = Mutex<HashMap<ContractName, Arc<Callback<OnRequest>>>>;

/// The session of a handle. Dropped, it ends the session.
#[derive(Debug)]
pub(crate) struct Held {
    session: Arc<Session>,
    peers: Peers,
    handlers: Arc<Handlers>,
    /// Whether the task runs that calls the handlers. Locked while a contract is added.
    is_serving: Mutex<bool>,
}

impl Held {
    pub(crate) fn end(&self) {
        // False if it has ended already.
        let _first = self.peers.end(self.session.id());
    }

    fn serve(
        &self,
        work: &Work,
        contract: &str,
        operations: &[String],
        handler: Callback<OnRequest>,
    ) -> Result<(), weir_error> {
        let name = contract.parse::<ContractName>().map_err(|error| Error::Invalid(error.to_string()))?;
        let mut is_serving = self.is_serving.lock();
        let room = if *is_serving { None } else { Some(work.room()?) };
        if self.handlers.lock().contains_key(&name) {
            return Err(Error::Invalid(format!("`{name}` is served already")).into());
        }
        // The handler is there before the first request.
        self.handlers.lock().insert(name.clone(), handler.into());
        if let Err(error) = self.session.serve(contract, operations) {
            let refused = self.handlers.lock().remove(&name);
            drop((room, is_serving));
            // Outside the locks, because this frees data of C.
            drop(refused);
            return Err(error.into());
        }
        if let Some(room) = room {
            room.spawn(serve(self.session.clone(), self.handlers.clone()));
            *is_serving = true;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

/// Calls the handlers until the session ends.
async fn serve(session: Arc<Session>, handlers: Arc<Handlers>) {
    let mut in_hand = FuturesUnordered::new();
    loop {
        let wanted = Wanted { requests: in_hand.len() < IN_HAND, events: false };
        tokio::select! {
            message = session.next(wanted) => match message {
                None => {
                    // What C has answered by now goes out, whatever this task has left of tokio's budget.
                    unconstrained(async { while let Some(Some(())) = in_hand.next().now_or_never() {} }).await;
                    break;
                }
                Some(PeerMessage::Request(request)) => {
                    let handler = handlers.lock().get(&request.contract).cloned();
                    in_hand.extend(handler.map(|handler| handled(request, &handler)));
                    // Taking a request takes nothing of tokio's budget, so other tasks would wait while there are more.
                    consume_budget().await;
                }
                Some(_event) => {}
            },
            Some(()) = in_hand.next() => {}
        }
    }
}

/// Gives C a request, and returns the wait for its answer.
fn handled(request: PeerRequest, handler: &Callback<OnRequest>) -> impl Future<Output = ()> + Send + use<> {
    let called = format!("{} {}", request.contract, request.operation);
    let answered = weir_request::hand_over(request.served(), &called, handler);
    async move {
        let given_up = request.given_up();
        tokio::select! {
            answer = answered => {
                // Too late if the caller has given up meanwhile, which C could ask.
                let _in_time = request.answer(answer.unwrap_or_else(|_freed| unanswered()));
            }
            () = given_up => {}
        }
    }
}
