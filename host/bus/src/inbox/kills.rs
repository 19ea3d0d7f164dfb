//! Requests whose senders want the work for them ended, and not only their wait: for the task that runs an instance.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use crate::{
    id::{InstanceId, MessageId},
    inbox::Inbox,
    waiter::Waiter,
};

/// What one instance must be ended for, if it has that in hand.
#[derive(Debug, Default)]
pub(super) struct Kills {
    told: Mutex<Told>,
    has_requests: AtomicBool,
}

#[derive(Debug, Default)]
struct Told {
    /// Some may still be in the inbox, from which no instance takes them once the wait has ended.
    requests: Vec<Arc<Waiter>>,
    task: Option<Waker>,
}

impl Kills {
    fn add(&self, request: Arc<Waiter>) {
        let mut told = self.told.lock();
        told.requests.push(request);
        self.has_requests.store(true, Ordering::Release);
        let task = told.task.clone();
        drop(told);
        task.into_iter().for_each(Waker::wake);
    }

    fn wait(&self, context: &Context<'_>) {
        let former = self.told.lock().task.replace(context.waker().clone());
        drop(former);
    }

    /// Returns a request that this instance has in hand. Forgets those that nobody has any more.
    fn in_hand(&self, instance: InstanceId) -> Option<MessageId> {
        let mut told = self.told.lock();
        let forgotten: Vec<_> = told.requests.extract_if(.., |request| request.is_let_go()).collect();
        self.has_requests.store(!told.requests.is_empty(), Ordering::Release);
        let found = told.requests.iter().find(|request| request.taker() == instance);
        let found = found.map(|request| request.id());
        drop(told);
        drop(forgotten);
        found
    }
}

impl Inbox {
    /// Ends the instance that has this request in hand, or takes it just now.
    pub(crate) fn kill(&self, request: &Arc<Waiter>) {
        let told: Vec<_> = self.lanes.lock().instances.iter().filter_map(|own| own.kills.clone()).collect();
        told.into_iter().for_each(|kills| kills.add(request.clone()));
    }

    /// Waits until this instance must be ended because of a request in hand, and returns that. For one task.
    pub(crate) fn killed(&self, instance: InstanceId) -> impl Future<Output = MessageId> + use<> {
        let kills = Arc::<Kills>::default();
        if let Some(own) = self.lanes.lock().instance(instance) {
            own.kills = Some(kills.clone());
        }
        // This is polled whenever the instance does anything, so the waker is left again only if it has changed.
        let mut known: Option<Waker> = None;
        poll_fn(move |context| {
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                kills.wait(context);
                known = Some(context.waker().clone());
            }
            let found = kills.has_requests.load(Ordering::Acquire).then(|| kills.in_hand(instance)).flatten();
            found.map_or(Poll::Pending, Poll::Ready)
        })
    }
}
