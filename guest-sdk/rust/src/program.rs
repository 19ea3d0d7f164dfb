//! An extension and its handlers without their types, and its run: it serves and subscribes, starts and stops in
//! order.

use std::{fmt, rc::Rc};

use futures_util::future::LocalBoxFuture;

#[cfg(not(target_family = "wasm"))]
use crate::Description;
use crate::{
    Context, Contract, Error, Event, Manifest, context::Origin, host::Host, link::Link, serve::Server,
};

pub(crate) type RequestHandler =
    Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<Vec<u8>, Error>>>;

pub(crate) type EventHandler =
    Rc<dyn Fn(Context, Event<Vec<u8>>) -> LocalBoxFuture<'static, Result<(), Error>>>;

pub(crate) type JobHandler = Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<(), Error>>>;

/// What runs at the start, at the stop or in the background.
pub(crate) type Hook = Box<dyn FnOnce(Context) -> LocalBoxFuture<'static, Result<(), Error>>>;

pub(crate) struct Program {
    pub(crate) manifest: Manifest,
    pub(crate) operations: Vec<(Contract, &'static str, RequestHandler)>,
    pub(crate) subscriptions: Vec<(String, EventHandler)>,
    pub(crate) any_event: Option<EventHandler>,
    /// Queues, each with its number of jobs in hand at once and their handler.
    pub(crate) jobs: Vec<(&'static str, usize, JobHandler)>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    pub(crate) background: Vec<Hook>,
}

impl Program {
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self {
            manifest,
            operations: Vec::new(),
            subscriptions: Vec::new(),
            any_event: None,
            jobs: Vec::new(),
            on_start: None,
            on_stop: None,
            background: Vec::new(),
        }
    }

    pub(crate) async fn run(self, host: Host) -> Result<(), Error> {
        self.check().map_err(Error::Invalid)?;
        let link = Rc::new(Link::new(host));
        let context = || Context::new(link.clone(), Origin::Itself);

        let mut server = Server::new(link.clone(), self.any_event);
        for (contract, handlers) in by_contract(self.operations) {
            server.serve(contract, handlers)?;
        }
        for (pattern, handler) in self.subscriptions {
            server.subscribe(&pattern, handler)?;
        }
        for job in self.jobs {
            server.work_on(job)?;
        }
        if let Some(hook) = self.on_start {
            server.run_hook(hook(context())).await?;
        }
        link.host.ready();
        for task in self.background {
            server.in_background(task(context()));
        }
        server.run().await?;
        match self.on_stop {
            Some(hook) => server.run_hook(hook(context())).await,
            None => Ok(()),
        }
    }

    /// Compares the handlers with the manifest. The error lists handlers that are missing, double or not in the
    /// manifest, and those of queues that may have no job at once.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut faults = Vec::new();
        for (place, (contract, operation, _)) in self.operations.iter().enumerate() {
            if !self.manifest.fulfills.contains(contract) {
                faults.push(format!(
                    "`{contract}` `{operation}` has a handler, but `fulfills` lacks `{contract}`"
                ));
            }
            let same =
                |(other, name, _): &(Contract, &str, RequestHandler)| (other, name) == (contract, operation);
            if self.operations.iter().take(place).any(same) {
                faults.push(format!("`{contract}` `{operation}` has two handlers"));
            }
        }
        for contract in self.manifest.fulfills {
            if !self.operations.iter().any(|(served, ..)| served == contract) {
                faults.push(format!("`fulfills` names `{contract}`, which has no handler"));
            }
        }
        #[cfg(not(target_family = "wasm"))]
        self.check_descriptions(&mut faults);
        self.check_subscriptions(&mut faults);
        self.check_jobs(&mut faults);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "the manifest of `{}` does not fit its handlers: {}",
                self.manifest.id,
                faults.join("; ")
            ))
        }
    }

    /// Compares the handlers with the descriptions of contracts. Only for tests: a component has none at run time.
    #[cfg(not(target_family = "wasm"))]
    fn check_descriptions(&self, faults: &mut Vec<String>) {
        for contract in self.manifest.fulfills {
            let described = contract.description().into_iter().flat_map(Description::operations);
            let served: Vec<_> = self
                .operations
                .iter()
                .filter(|(served, ..)| served == contract)
                .map(|(_, name, _)| *name)
                .collect();
            // One fault is enough for a contract without any handler.
            for operation in described.filter(|operation| !served.is_empty() && !served.contains(operation)) {
                faults.push(format!("`{contract}` describes `{operation}`, which has no handler"));
            }
        }
    }

    fn check_subscriptions(&self, faults: &mut Vec<String>) {
        let covers = weir_names::rules::covers;
        for (place, (pattern, _)) in self.subscriptions.iter().enumerate() {
            if !self.manifest.subscribes.iter().any(|granted| covers(granted, pattern)) {
                faults.push(format!("`{pattern}` has a handler, but `subscribes` does not cover it"));
            }
            if self.subscriptions.iter().take(place).any(|(other, _)| other == pattern) {
                faults.push(format!("`{pattern}` has two handlers"));
            }
        }
        for granted in self.manifest.subscribes {
            if self.any_event.is_none()
                && !self.subscriptions.iter().any(|(pattern, _)| covers(granted, pattern))
            {
                faults.push(format!("`subscribes` names `{granted}`, which has no handler"));
            }
        }
    }

    fn check_jobs(&self, faults: &mut Vec<String>) {
        for (place, (queue, at_once, _)) in self.jobs.iter().enumerate() {
            if !self.manifest.takes.contains(queue) {
                faults.push(format!("jobs of `{queue}` have a handler, but `takes` lacks `{queue}`"));
            }
            if self.jobs.iter().take(place).any(|(other, ..)| other == queue) {
                faults.push(format!("jobs of `{queue}` have two handlers"));
            }
            if *at_once == 0 {
                faults.push(format!("jobs of `{queue}` have a handler, but it is to have 0 of them at once"));
            }
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

type Handlers = Vec<(&'static str, RequestHandler)>;

/// Groups operations by contract, in the order of first appearance.
fn by_contract(operations: Vec<(Contract, &'static str, RequestHandler)>) -> Vec<(Contract, Handlers)> {
    let mut contracts: Vec<(Contract, Handlers)> = Vec::new();
    for (contract, operation, handler) in operations {
        match contracts.iter_mut().find(|(known, _)| *known == contract) {
            Some((_, handlers)) => handlers.push((operation, handler)),
            None => contracts.push((contract, vec![(operation, handler)])),
        }
    }
    contracts
}
