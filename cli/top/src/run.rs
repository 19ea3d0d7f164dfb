//! The threads of the view, and the loop that draws.
//!
//! One thread waits for keys, one asks Main at each interval, one gives orders. All of them tell the loop, which never
//! waits for Main: keys work however slow Main is.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use ratatui::crossterm::event::{self, Event as Input, KeyEvent, KeyEventKind};

use crate::{
    answers::Look,
    screen::{self, Screen},
    sort::SortKey,
    source::{Fault, Looks, Order, Orders},
    state::{Effect, State},
};

/// The most events that wait for the loop, as keys typed on a slow terminal do. More wait in the terminal.
const MAX_EVENTS: usize = 64;

/// The least pause after a look, also if Main takes longer than the interval.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// How the view begins.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time between two looks at Main.
    pub interval: Duration,
    /// What the rows are sorted by.
    pub sort: SortKey,
    /// Shows only rows with this in their name or state.
    pub filter: String,
    /// Whether to use colours. Everything is also said without them.
    pub color: bool,
}

/// Tells the view what happens to its process.
#[derive(Clone, Debug)]
pub struct Outside(SyncSender<Event>);

impl Outside {
    /// Ends the view, as after a signal or when the terminal is gone.
    pub fn end(&self) {
        // The view has ended already if nobody receives this.
        let _ended = self.0.send(Event::End);
    }

    /// Stops the process, once the terminal is given back.
    pub fn suspend(&self) {
        let _ended = self.0.send(Event::Suspend);
    }

    /// Takes the terminal over again, after the process was stopped and goes on.
    pub fn go_on(&self) {
        let _ended = self.0.send(Event::GoOn);
    }
}

/// A view that is not shown yet.
#[derive(Debug)]
pub struct Top {
    options: Options,
    sender: SyncSender<Event>,
    events: Receiver<Event>,
}

#[derive(Debug)]
enum Event {
    Key(KeyEvent),
    Resized,
    /// Boxed, since it is the largest variant by far.
    Looked(Box<Result<Look, Fault>>),
    Ordered(Order, String, Result<String, Fault>),
    Suspend,
    GoOn,
    Late,
    End,
}

impl Top {
    /// Makes a view, which shows nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (sender, events) = sync_channel(MAX_EVENTS);
        Self { options, sender, events }
    }

    /// Returns the handle through which the process tells the view what happens.
    #[must_use]
    pub fn outside(&self) -> Outside {
        Outside(self.sender.clone())
    }

    /// Shows the view until the operator quits or `Outside` ends it. Gives the terminal back in any case. `suspend`
    /// stops the process, and returns when it goes on.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be used.
    pub fn run(
        self,
        looks: impl Looks + 'static,
        orders: impl Orders + 'static,
        suspend: impl Fn(),
    ) -> io::Result<()> {
        let Self { options, sender, events } = self;
        let mut screen = Screen::open()?;
        let asker = Asker::start(looks, options.interval, sender.clone())?;
        let giver = start_giver(orders, sender.clone())?;
        start("keys", move || forward_keys(&sender))?;
        let mut state = State::new(options, Instant::now());
        screen.draw(&mut state)?;
        loop {
            let mut next = Some(wait(&events, &state));
            // Everything that has come is handled before the next drawing, but no more than the channel holds.
            let mut handled = 0;
            while let Some(event) = next {
                match handle(event, &mut state) {
                    Some(Effect::Quit) => return Ok(()),
                    Some(Effect::Suspend) => {
                        screen::restore();
                        suspend();
                        screen.enter()?;
                    }
                    Some(Effect::GoOn) => screen.enter()?,
                    Some(Effect::Watch(log)) => asker.look(log),
                    Some(Effect::Give(order, id)) => {
                        // There is room for one order, and the state gives no second one while one is under way.
                        let _room = giver.try_send((order, id));
                    }
                    None => {}
                }
                handled += 1;
                next = if handled < MAX_EVENTS { events.try_recv().ok() } else { None };
            }
            screen.draw(&mut state)?;
        }
    }
}

/// Gives the terminal its modes back, for a process that must end while the view cannot, as nobody reads the terminal.
/// Writes nothing to it.
pub fn abandon() {
    screen::restore_modes();
}

fn wait(events: &Receiver<Event>, state: &State) -> Event {
    match state.patience(Instant::now()) {
        Some(patience) => events.recv_timeout(patience).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Event::Late,
            RecvTimeoutError::Disconnected => Event::End,
        }),
        None => events.recv().unwrap_or(Event::End),
    }
}

fn handle(event: Event, state: &mut State) -> Option<Effect> {
    match event {
        Event::Key(key) => return state.key(key),
        Event::Resized => {}
        Event::Looked(answer) => state.answered(*answer, Instant::now()),
        Event::Ordered(order, id, outcome) => return Some(state.ordered(order, &id, outcome)),
        Event::Suspend => return Some(Effect::Suspend),
        Event::GoOn => return Some(Effect::GoOn),
        Event::Late => state.late(),
        Event::End => return Some(Effect::Quit),
    }
    None
}

/// Sends keys to the loop. Blocks on the terminal, so that an idle view takes no processor time for keys.
fn forward_keys(events: &SyncSender<Event>) {
    loop {
        let event = match event::read() {
            Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(Input::Resize(..)) => Event::Resized,
            Ok(_) => continue,
            // The terminal is gone.
            Err(_) => Event::End,
        };
        let is_last = matches!(event, Event::End);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// The handle of the thread that looks at Main.
struct Asker {
    /// The extension whose log is asked for.
    log: Arc<Mutex<Option<String>>>,
    /// A message here asks for a look at once.
    bell: SyncSender<()>,
}

impl Asker {
    fn start(looks: impl Looks + 'static, interval: Duration, events: SyncSender<Event>) -> io::Result<Self> {
        let log = Arc::new(Mutex::new(None));
        // Room for one message is enough: more would ask for the same look.
        let (bell, rings) = sync_channel(1);
        let wanted = Arc::clone(&log);
        start("looks", move || ask(looks, interval, &wanted, &rings, &events))?;
        Ok(Self { log, bell })
    }

    fn look(&self, log: Option<String>) {
        *self.log.lock() = log;
        // If the channel is full, a look is asked for already. If its thread has panicked, the process ends.
        let _rung = self.bell.try_send(());
    }
}

fn ask(
    mut looks: impl Looks,
    interval: Duration,
    wanted: &Mutex<Option<String>>,
    rings: &Receiver<()>,
    events: &SyncSender<Event>,
) {
    loop {
        let begun = Instant::now();
        let log = wanted.lock().clone();
        let answer = looks.look(log.as_deref()).and_then(|answers| Look::read(&answers, log));
        if events.send(Event::Looked(Box::new(answer))).is_err() {
            return;
        }
        let pause = interval.saturating_sub(begun.elapsed()).max(MIN_PAUSE);
        if let Err(RecvTimeoutError::Disconnected) = rings.recv_timeout(pause) {
            return;
        }
    }
}

fn start_giver(
    mut orders: impl Orders + 'static,
    events: SyncSender<Event>,
) -> io::Result<SyncSender<(Order, String)>> {
    // One order is under way at a time.
    let (sender, given) = sync_channel::<(Order, String)>(1);
    start("orders", move || {
        for (order, id) in given {
            let outcome = orders.give(order, &id);
            if events.send(Event::Ordered(order, id, outcome)).is_err() {
                return;
            }
        }
    })?;
    Ok(sender)
}

/// Starts a thread that ends with the process: it may wait for Main or the terminal.
fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}
