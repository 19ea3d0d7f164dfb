//! The terminal: taken over, and given back as it was, however the view ends.

use std::{
    cell::Cell,
    io::{self, BufWriter, Stdout, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        execute,
        terminal::{
            Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        },
    },
};

use crate::{state::State, view};

/// The bytes of a whole screen of a large terminal, so that it is not shown in parts.
const BUFFER: usize = 64 * 1024;

/// Whether the view has taken over the terminal. A panic of any thread must know it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Held while a picture is written, so that none comes after the terminal was given back.
static DRAWING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread draws, and so may panic with `DRAWING` locked.
    static IS_DRAWER: Cell<bool> = const { Cell::new(false) };
}

pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Ours>>>,
}

/// Stdout while the view has the terminal. What is written later goes nowhere: ratatui shows the cursor in a drop, and
/// panics there if neither the terminal nor stderr takes anything.
#[derive(Debug)]
struct Ours(Stdout);

impl Write for Ours {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if IS_OPEN.load(Ordering::SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if IS_OPEN.load(Ordering::SeqCst) { self.0.flush() } else { Ok(()) }
    }
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        give_back_after_a_panic();
        IS_DRAWER.set(true);
        let mut screen = Self { terminal: terminal()? };
        screen.enter()?;
        Ok(screen)
    }

    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let _drawing = DRAWING.lock();
        if !IS_OPEN.load(Ordering::SeqCst) {
            // Another thread has panicked, and ends the program.
            return Ok(());
        }
        self.terminal.draw(|frame| view::draw(frame, state)).map(drop)
    }

    /// Takes the terminal over, and forgets what was on it. A shell may have had it meanwhile.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        restore();
        // A new terminal is made, since clearing the old one would ask for the cursor's position and wait for the
        // answer. The old one is dropped while the terminal is not ours.
        self.terminal = terminal()?;
        IS_OPEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(())
    }
}

/// Makes a terminal with nothing on it.
fn terminal() -> io::Result<Terminal<CrosstermBackend<BufWriter<Ours>>>> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, Ours(io::stdout()))))
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back if it is ours. Errors are ignored: a terminal that is gone needs nothing.
pub(crate) fn restore() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let mut stdout = io::stdout();
        let _gone = execute!(stdout, LeaveAlternateScreen, Show).and_then(|()| stdout.flush());
        restore_modes();
    }
}

/// Restores the terminal's modes, so that keys make lines and signals again.
pub(crate) fn restore_modes() {
    let _gone = disable_raw_mode();
}

/// Makes a panic of any thread give the terminal back and end the program, which would go on without that part. The
/// message comes last, so that it stays readable.
fn give_back_after_a_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let _drawn = (!IS_DRAWER.get()).then(|| DRAWING.lock());
            restore();
            report(panic);
            std::process::exit(PANICKED);
        }));
    });
}

/// The exit code of a program whose main thread has panicked.
const PANICKED: i32 = 101;
