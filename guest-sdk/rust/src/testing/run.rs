//! Runs an extension and its fakes together, on the test's own thread.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::future::LocalBoxFuture;

use crate::{
    Error,
    host::{Host, MessageId},
    program::Program,
};

pub(super) struct Run {
    pub(super) host: Host,
    extension: RefCell<Option<LocalBoxFuture<'static, Result<(), Error>>>>,
    outcome: RefCell<Option<Result<(), Error>>>,
    woken: Arc<Woken>,
}

impl Run {
    pub(super) fn new(program: Program) -> Self {
        let host = Host::new(program.manifest);
        Self {
            extension: RefCell::new(Some(Box::pin(program.run(host.clone())))),
            host,
            outcome: RefCell::default(),
            woken: Arc::new(Woken(AtomicBool::new(true))),
        }
    }

    /// The outcome of the extension. `None` while it runs.
    pub(super) fn outcome(&self) -> Option<Result<(), Error>> {
        self.outcome.borrow().clone()
    }

    /// Lets time pass until the extension has answered, or the request's deadline has passed.
    pub(super) fn wait_for(&self, id: MessageId) -> Result<Vec<u8>, Error> {
        let clock = self.host.clock();
        loop {
            self.run_until_idle();
            if let Some(answer) = self.host.answer(id) {
                return answer;
            }
            let deadline = self.host.deadline(id).ok_or(Error::PeerGone)?;
            clock.advance_to(clock.next().map_or(deadline, |next| next.min(deadline)));
        }
    }

    /// Lets time pass until the condition holds, or the extension has ended.
    ///
    /// # Panics
    /// If the condition never holds.
    pub(super) fn run_until(&self, is_so: impl Fn(&Host) -> bool) {
        let clock = self.host.clock();
        loop {
            self.run_until_idle();
            if self.outcome.borrow().is_some() || is_so(&self.host) {
                return;
            }
            match clock.next() {
                Some(next) => clock.advance_to(next),
                None => panic!("the extension waits for what never comes"),
            }
        }
    }

    /// Runs the extension and the fakes until all of them wait.
    pub(super) fn run_until_idle(&self) {
        let waker = Waker::from(self.woken.clone());
        let mut cx = Context::from_waker(&waker);
        while self.woken.0.swap(false, Ordering::AcqRel) {
            let mut extension = self.extension.borrow_mut();
            if let Some(running) = &mut *extension
                && let Poll::Ready(outcome) = running.as_mut().poll(&mut cx)
            {
                *extension = None;
                self.outcome.replace(Some(outcome));
                self.host.gone();
            }
            self.host.poll_fakes(&mut cx);
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
