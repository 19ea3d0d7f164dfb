//! One shared queue: jobs that wait, those who wait for one, and jobs in hand.
//!
//! While a job waits, nobody who could take it waits for one: it is handed to whoever of those that wait has had
//! fewest, and goes to the next if that comes back with something else. A job counts in the capacity until it is
//! done, so that one that comes back always has room.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_metrics::PerSecond;
use weir_names::{Policy, QueueName};

use super::{
    Error, MessageId, OnLoss, PeerId,
    inbox::ENVELOPE_BYTES,
    room::{Room, Ticket},
};

/// What an operator sets of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Jobs that wait and jobs in hand.
    pub messages: u32,
    /// The same in bytes.
    pub bytes: u64,
    pub when_full: Policy,
    pub max_deliveries: u32,
    /// Bytes of the largest payload that some extension takes.
    pub max_payload: u64,
}

/// Jobs by which a reader may be behind the others, and is served before them until it has had as many.
const BEHIND: u64 = 256;

/// Of a reader that has had none, and was in no line.
const NEW: u64 = u64::MAX;

/// A queue that any number put into and take from.
pub struct Queue {
    name: QueueName,
    on_loss: Arc<OnLoss>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    settings: QueueSettings,
    /// Where jobs go that were delivered too often.
    dead_letter: Weak<Queue>,
    /// None is put any more: it is not configured, or Main has ended.
    is_closed: bool,
    waiting: VecDeque<Job>,
    /// Jobs that wait for room.
    blocked: VecDeque<(Ticket, Job)>,
    /// Those who wait for a job: who has had fewest, and of equals has waited longest, first.
    readers: VecDeque<Arc<Reader>>,
    /// The most jobs that a reader has had.
    most: u64,
    /// Peers that take, and how many readers of theirs there are.
    takers: BTreeMap<PeerId, u32>,
    in_hand: usize,
    in_hand_bytes: u64,
    /// Of the jobs that wait and those in hand.
    bytes: u64,
    counts: Counts,
    /// Jobs that were delivered too often, and that no other queue keeps.
    unburied: u64,
    put_rate: PerSecond,
    done_rate: PerSecond,
}

/// What became of the jobs of a queue so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub put: u64,
    pub delivered: u64,
    pub done: u64,
    pub returned: u64,
    /// Delivered too often.
    pub dead: u64,
    /// Lost for want of room.
    pub shed: u64,
    pub refused: u64,
}

/// A queue as it is shown.
#[derive(Clone, Debug)]
pub struct QueueStats {
    pub name: QueueName,
    pub settings: QueueSettings,
    pub dead_letter: Option<QueueName>,
    pub is_configured: bool,
    pub waiting: u64,
    pub in_hand: u64,
    pub bytes: u64,
    /// Senders that wait for room.
    pub blocked: u64,
    /// Readers that wait for a job.
    pub readers: u64,
    pub counts: Counts,
    pub put_rate: u64,
    pub done_rate: u64,
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: MessageId,
    pub sender: PeerId,
    pub at: Instant,
    pub payload: Bytes,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Where it was delivered too often, and how often.
    pub died_in: Option<(QueueName, u32)>,
}

impl Job {
    fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

/// A job in hand. Dropped before it is done, it goes back.
#[derive(Debug)]
pub struct TakenJob {
    queue: Arc<Queue>,
    /// None once it is done.
    job: Option<Job>,
    _place: Place,
}

impl TakenJob {
    pub fn get(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub fn done(mut self) {
        if let Some(job) = self.job.take() {
            self.queue.finish(&job);
        }
    }
}

impl Drop for TakenJob {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.queue.give_back(job);
        }
    }
}

/// One job that a reader may have. Dropped, it may have another.
#[derive(Debug)]
struct Place(Option<Arc<AtomicUsize>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            left.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A job that a reader was handed and has not taken.
#[derive(Debug)]
struct Handed(Job, Place);

/// One who waits for a job of one queue, and the job that it was handed.
pub struct Reader {
    /// Bytes of the largest payload that it takes.
    max_payload: u64,
    /// How many more jobs it may have, with others.
    left: Option<Arc<AtomicUsize>>,
    /// Whether what it has is counted there.
    counts: AtomicBool,
    /// Jobs that it has had, as far as they count. Of the queue, under its lock.
    had: AtomicU64,
    handed: Mutex<Option<Handed>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// `left` is how many more jobs all readers that share it may have.
    pub fn new(
        max_payload: u64,
        left: Option<Arc<AtomicUsize>>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (counts, wake) = (AtomicBool::new(left.is_some()), Box::new(wake));
        let had = AtomicU64::new(NEW);
        Arc::new(Self { max_payload, left, counts, had, handed: Mutex::default(), wake })
    }

    /// Whether the jobs that it gets from now on are counted.
    pub fn count(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// A place for one more job; none if it may have no more.
    fn place(&self) -> Option<Place> {
        let Some(left) = self.left.as_ref().filter(|_| self.counts.load(Ordering::Relaxed)) else {
            return Some(Place(None));
        };
        let one_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).ok()?;
        Some(Place(Some(left.clone())))
    }

    fn had(&self) -> u64 {
        self.had.load(Ordering::Relaxed)
    }

    /// It has one job more. One that is new counts as one that has had as many as the others.
    fn count_one(&self, most: u64) -> u64 {
        let had = self.caught_up(most) + 1;
        self.set_had(had);
        had
    }

    /// Jobs that it counts as having had where others have had so many: who was away for long is not made up for all
    /// of that.
    fn caught_up(&self, most: u64) -> u64 {
        match self.had() {
            NEW => most,
            had => had.max(most.saturating_sub(BEHIND)),
        }
    }

    fn set_had(&self, jobs: u64) {
        self.had.store(jobs, Ordering::Relaxed);
    }

    pub fn has_job(&self) -> bool {
        self.handed().is_some()
    }

    fn fits(&self, job: &Job) -> bool {
        job.payload.len() as u64 <= self.max_payload
    }

    fn handed(&self) -> MutexGuard<'_, Option<Handed>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Queue {
    pub(super) fn new(name: QueueName, settings: QueueSettings, on_loss: Arc<OnLoss>) -> Arc<Self> {
        let state = State {
            settings,
            dead_letter: Weak::new(),
            is_closed: false,
            waiting: VecDeque::new(),
            blocked: VecDeque::new(),
            readers: VecDeque::new(),
            most: 0,
            takers: BTreeMap::new(),
            in_hand: 0,
            in_hand_bytes: 0,
            bytes: 0,
            counts: Counts::default(),
            unburied: 0,
            put_rate: PerSecond::default(),
            done_rate: PerSecond::default(),
        };
        Arc::new(Self { name, on_loss, state: Mutex::new(state) })
    }

    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// Sets what the operator has changed, also for what waits for room.
    pub(super) fn set(&self, settings: QueueSettings, dead_letter: Weak<Queue>) {
        let mut state = self.state();
        state.settings = settings;
        state.dead_letter = dead_letter;
        state.is_closed = false;
        let (before, allowed, blocked) = (state.lost(), state.allowed(), state.blocked.len());
        state.blocked.retain(|(_, job)| job.payload.len() as u64 <= allowed);
        state.counts.refused += (blocked - state.blocked.len()) as u64;
        let mut woken = state.admit();
        if state.settings.when_full != Policy::Block {
            for (ticket, job) in std::mem::take(&mut state.blocked) {
                if let Ok(reader) = state.place(job) {
                    woken.extend(reader);
                    ticket.admit();
                }
            }
        }
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
    }

    /// Jobs that wait and that nobody takes any more are dead.
    pub(super) fn bury_unfit(&self) {
        let mut state = self.state();
        let waiting = std::mem::take(&mut state.waiting);
        let (unfit, kept): (VecDeque<_>, VecDeque<_>) =
            waiting.into_iter().partition(|job| state.is_unfit(job));
        state.waiting = kept;
        state.bytes -= unfit.iter().map(Job::bytes).sum::<u64>();
        let woken = state.admit();
        drop(state);
        wake(woken);
        unfit.into_iter().for_each(|job| self.die(job));
    }

    /// One more reader of a peer's.
    pub fn join(&self, peer: PeerId) {
        *self.state().takers.entry(peer).or_default() += 1;
    }

    /// One fewer.
    pub fn part(&self, peer: PeerId) {
        let mut state = self.state();
        if let Some(readers) = state.takers.get_mut(&peer) {
            *readers -= 1;
            if *readers == 0 {
                state.takers.remove(&peer);
            }
        }
    }

    /// Peers that take.
    pub(super) fn takers(&self) -> Vec<PeerId> {
        self.state().takers.keys().copied().collect()
    }

    /// None is put any more; whoever waits for room is turned away.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let turned_away = std::mem::take(&mut state.blocked);
        let readers: Vec<_> = state.readers.iter().cloned().collect();
        drop(state);
        drop(turned_away);
        wake(readers);
    }

    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Puts a job, as the policy has it where there is no room. With a room it waits for that.
    pub(super) fn put(&self, job: Job) -> Result<Option<Arc<Room>>, Error> {
        let mut state = self.state();
        self.check(&state, &job)?;
        if state.settings.when_full == Policy::Block && (!state.blocked.is_empty() || !state.has_room(&job)) {
            let room = Arc::<Room>::default();
            state.blocked.push_back((room.ticket(), job));
            return Ok(Some(room));
        }
        let before = state.lost();
        let Ok(woken) = state.place(job) else {
            return Err(Error::Overloaded(self.name.to_string()));
        };
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
        Ok(None)
    }

    /// Fails if it takes no jobs, or none so large.
    fn check(&self, state: &State, job: &Job) -> Result<(), Error> {
        if state.is_closed {
            return Err(super::queues::closed(self));
        }
        let (bytes, allowed) = (job.payload.len() as u64, state.allowed());
        if bytes > allowed {
            return Err(Error::TooLarge { bytes, allowed });
        }
        Ok(())
    }

    /// Says that jobs were lost, when their number has come to 1, 2, 4, 8 and so on.
    fn tell(&self, before: u64, after: u64) {
        if after.checked_ilog2() != before.checked_ilog2() {
            (self.on_loss)(&format!("queue {}", self.name), after);
        }
    }

    /// Its sender waits no longer.
    pub(super) fn withdraw(&self, room: &Arc<Room>) {
        let mut state = self.state();
        let before = state.blocked.len();
        state.blocked.retain(|(ticket, _)| !ticket.is_of(room));
        let refused = before - state.blocked.len();
        state.counts.refused += refused as u64;
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    /// A job for this reader, without waiting: what it was handed, else the first that it takes.
    pub fn take(self: &Arc<Self>, reader: &Reader) -> Option<TakenJob> {
        let mut state = self.state();
        let handed = reader.handed().take();
        let Handed(mut job, place) = match handed {
            Some(handed) => handed,
            None => state.take_for(reader)?,
        };
        job.deliveries = job.deliveries.saturating_add(1);
        state.counts.delivered += 1;
        Some(TakenJob { queue: self.clone(), job: Some(job), _place: place })
    }

    /// The reader waits for a job, unless there is one.
    pub fn enlist(&self, reader: &Arc<Reader>) {
        let mut state = self.state();
        if reader.has_job() {
            return;
        }
        let is_listed = state.readers.iter().any(|waiting| Arc::ptr_eq(waiting, reader));
        match state.take_for(reader) {
            Some(handed) => {
                *reader.handed() = Some(handed);
                state.readers.retain(|waiting| !Arc::ptr_eq(waiting, reader));
            }
            None if is_listed => {}
            None => {
                reader.set_had(reader.caught_up(state.most));
                let place = state.readers.partition_point(|other| other.had() <= reader.had());
                state.readers.insert(place, reader.clone());
            }
        }
    }

    /// The reader waits no longer. What it was handed stays with it; whether that is a job.
    pub fn delist(&self, reader: &Arc<Reader>) -> bool {
        self.state().readers.retain(|waiting| !Arc::ptr_eq(waiting, reader));
        reader.has_job()
    }

    /// The reader takes no more: what it was handed and has not taken goes to another.
    pub fn leave(&self, reader: &Arc<Reader>) {
        self.delist(reader);
        let mut state = self.state();
        let handed = reader.handed().take();
        if let Some(Handed(job, place)) = handed {
            drop(place);
            // It has not had it.
            reader.set_had(reader.had() - 1);
            state.release(&job);
            self.return_or_die(state, job, false);
        }
    }

    /// The first jobs that wait.
    pub fn jobs(&self, max: usize) -> Vec<Job> {
        self.state().waiting.iter().take(max).cloned().collect()
    }

    /// Whether it is configured, or holds jobs.
    pub(super) fn is_there(&self) -> bool {
        let state = self.state();
        !state.is_closed || state.in_hand > 0 || !state.waiting.is_empty()
    }

    /// Puts a job at the end, if there is room; nothing gives way to it.
    pub(super) fn put_back(&self, job: Job) -> Result<(), Error> {
        let mut state = self.state();
        self.check(&state, &job)?;
        if !state.has_room(&job) {
            return Err(Error::Overloaded(self.name.to_string()));
        }
        state.count_put();
        let woken = state.add(job);
        drop(state);
        wake(woken);
        Ok(())
    }

    /// Puts back to the front what was extracted, and lets in who waited for the room.
    pub(super) fn restore(&self, jobs: Vec<Job>) {
        let mut state = self.state();
        let mut woken = Vec::new();
        for job in jobs.into_iter().rev() {
            state.bytes += job.bytes();
            woken.extend(state.add_first(job));
        }
        woken.extend(state.admit());
        drop(state);
        wake(woken);
    }

    /// Takes out the jobs that wait and are wanted, in order.
    pub(super) fn extract(&self, is_wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let mut state = self.state();
        let (taken, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.waiting).into_iter().partition(is_wanted);
        state.waiting = kept.into();
        state.bytes -= taken.iter().map(Job::bytes).sum::<u64>();
        taken
    }

    pub fn stats(&self) -> QueueStats {
        let state = self.state();
        QueueStats {
            name: self.name.clone(),
            settings: state.settings.clone(),
            dead_letter: state.dead_letter.upgrade().map(|queue| queue.name.clone()),
            is_configured: !state.is_closed,
            waiting: state.waiting.len() as u64,
            in_hand: state.in_hand as u64,
            bytes: state.bytes,
            blocked: state.blocked.len() as u64,
            readers: state.readers.len() as u64,
            counts: state.counts,
            put_rate: state.put_rate.now(),
            done_rate: state.done_rate.now(),
        }
    }

    /// A job that the dead-letter policy brings here: the oldest give way to it, whatever the queue's own
    /// policy is.
    fn bury(&self, job: Job) {
        let mut state = self.state();
        let before = state.lost();
        let mut woken = None;
        if state.is_closed || !state.has_room_beside_hands(&job) {
            state.counts.shed += 1;
        } else {
            state.drop_oldest_for(&job);
            state.count_put();
            woken = state.add(job);
        }
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
    }

    fn finish(&self, job: &Job) {
        let mut state = self.state();
        state.release(job);
        state.bytes -= job.bytes();
        state.counts.done += 1;
        state.done_rate.add(std::time::Instant::now(), 1);
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    fn give_back(&self, job: Job) {
        let mut state = self.state();
        state.release(&job);
        state.counts.returned += 1;
        let is_dead = job.deliveries >= state.settings.max_deliveries;
        self.return_or_die(state, job, is_dead);
    }

    /// A job that was in hand comes back, to the front, or goes where dead ones go.
    fn return_or_die(&self, mut state: MutexGuard<'_, State>, job: Job, is_dead: bool) {
        if !is_dead && !state.is_unfit(&job) {
            let woken = state.add_first(job);
            drop(state);
            return wake(woken);
        }
        state.bytes -= job.bytes();
        let woken = state.admit();
        drop(state);
        wake(woken);
        self.die(job);
    }

    /// Nobody finishes this job, which is out of the queue: it goes where dead ones go.
    fn die(&self, mut job: Job) {
        let mut state = self.state();
        let before = state.lost();
        state.counts.dead += 1;
        let dead_letter = state.dead_letter.upgrade();
        state.unburied += u64::from(dead_letter.is_none());
        let after = state.lost();
        drop(state);
        self.tell(before, after);
        if let Some(dead_letter) = dead_letter {
            job.died_in = Some((self.name.clone(), job.deliveries));
            job.deliveries = 0;
            dead_letter.bury(job);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Bytes of the largest payload that it takes.
    fn allowed(&self) -> u64 {
        self.settings.bytes.saturating_sub(ENVELOPE_BYTES).min(self.settings.max_payload)
    }

    /// Whether nobody takes a job so large. A dead letter stays whatever its size: it can be put back.
    fn is_unfit(&self, job: &Job) -> bool {
        job.died_in.is_none() && job.payload.len() as u64 > self.settings.max_payload
    }

    /// Jobs of which nothing is left.
    fn lost(&self) -> u64 {
        self.counts.shed + self.unburied
    }

    /// Places a job as a policy has it that does not wait, and says who is to be woken; fails where it is refused.
    fn place(&mut self, job: Job) -> Result<Option<Arc<Reader>>, ()> {
        let policy = self.settings.when_full;
        if !self.has_room(&job) {
            match policy {
                Policy::DropOldest if self.has_room_beside_hands(&job) => self.drop_oldest_for(&job),
                Policy::DropOldest | Policy::DropNewest | Policy::Latest => {
                    self.counts.shed += 1;
                    return Ok(None);
                }
                Policy::Reject | Policy::Block => {
                    self.counts.refused += 1;
                    return Err(());
                }
            }
        }
        self.count_put();
        Ok(self.add(job))
    }

    /// The oldest that wait give way.
    fn drop_oldest_for(&mut self, job: &Job) {
        while !self.has_room(job)
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.counts.shed += 1;
        }
    }

    /// The first job that waits and that this reader may have.
    fn take_for(&mut self, reader: &Reader) -> Option<Handed> {
        let at = self.waiting.iter().position(|job| reader.fits(job))?;
        let place = reader.place()?;
        let job = self.waiting.remove(at)?;
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        Some(Handed(job, place))
    }

    fn hold(&mut self, job: &Job) {
        self.in_hand += 1;
        self.in_hand_bytes += job.bytes();
    }

    fn release(&mut self, job: &Job) {
        self.in_hand -= 1;
        self.in_hand_bytes -= job.bytes();
    }

    fn count_put(&mut self) {
        self.counts.put += 1;
        self.put_rate.add(std::time::Instant::now(), 1);
    }

    /// Whether there is room if nothing waits: what is in hand stays.
    fn has_room_beside_hands(&self, job: &Job) -> bool {
        u32::try_from(self.in_hand).is_ok_and(|held| held < self.settings.messages)
            && self.in_hand_bytes + job.bytes() <= self.settings.bytes
    }

    fn has_room(&self, job: &Job) -> bool {
        let held = self.waiting.len() + self.in_hand;
        u32::try_from(held).is_ok_and(|held| held < self.settings.messages)
            && self.bytes + job.bytes() <= self.settings.bytes
    }

    /// Hands a new job to the first who waits and takes it, who is to be woken, or lets it wait.
    fn add(&mut self, job: Job) -> Option<Arc<Reader>> {
        self.bytes += job.bytes();
        match self.hand_over(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_back(job);
                None
            }
        }
    }

    /// The same with one that was in hand: it comes before those that wait.
    fn add_first(&mut self, job: Job) -> Option<Arc<Reader>> {
        match self.hand_over(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_front(job);
                None
            }
        }
    }

    fn hand_over(&mut self, job: Job) -> Result<Arc<Reader>, Job> {
        let takes =
            |(at, reader): (usize, &Arc<Reader>)| Some((at, reader.place().filter(|_| reader.fits(&job))?));
        let Some((at, place)) = self.readers.iter().enumerate().find_map(takes) else { return Err(job) };
        let Some(reader) = self.readers.remove(at) else { return Err(job) };
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        *reader.handed() = Some(Handed(job, place));
        Ok(reader)
    }

    /// Lets in what waits for room, as far as there is some.
    fn admit(&mut self) -> Vec<Arc<Reader>> {
        let mut woken = Vec::new();
        while let Some((_, job)) = self.blocked.front()
            && self.has_room(job)
            && let Some((ticket, job)) = self.blocked.pop_front()
        {
            self.count_put();
            woken.extend(self.add(job));
            ticket.admit();
        }
        woken
    }
}

fn wake(readers: impl IntoIterator<Item = Arc<Reader>>) {
    for reader in readers {
        (reader.wake)();
    }
}
