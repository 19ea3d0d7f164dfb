//! A running Main.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use weir_host::{Client, Control, Error, Main, blocking::wait_for, hooks::Hooks, peers::Peers};

use crate::{
    c::{ErrorOut, given, run, run_infallible},
    error::weir_error,
    session::Held,
    work::Work,
};

/// A running Main, or a session with it: see `weir_session_open`. Any number of threads may use it at once. Free it with
/// `weir_main_free`, after all other threads are done with it. Handles that came from it, such as queues, may be freed
/// before or after.
#[derive(Debug)]
pub struct weir_main {
    pub(crate) client: Client,
    pub(crate) work: Work,
    has_ended: AtomicBool,
    holds: Holds,
}

/// What only Main has, or only a session.
#[derive(Debug)]
enum Holds {
    Main(Box<Whole>),
    Session(Held),
}

#[derive(Debug)]
struct Whole {
    control: Control,
    hooks: Hooks,
    peers: Peers,
    main: Mutex<Option<Main>>,
}

/// Stops every extension, and waits for the last: at most for the longest `stop-timeout` and a second. Calls under way
/// fail. After that every function of this Main fails with `WEIR_ERROR_KIND_ENDED`. Blocks: not in a callback on Main's
/// thread. Of a session it ends the session alone, and does not block.
///
/// Errors: `WEIR_ERROR_KIND_ENDED` if it was shut down before, `WEIR_ERROR_KIND_PANIC` if it had ended by a fault of its
/// own.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_shutdown(main: Option<&weir_main>, error: ErrorOut) -> bool {
    run(error, || {
        let main = given(main, "main")?;
        match &main.holds {
            Holds::Session(session) => {
                if main.has_ended.swap(true, Ordering::AcqRel) {
                    return Err(weir_error::ended());
                }
                session.end();
            }
            Holds::Main(whole) => {
                refuse_on_mains_thread()?;
                main.has_ended.store(true, Ordering::Release);
                let running = whole.main.lock().take();
                running.ok_or_else(weir_error::ended)?.shutdown_blocking()?;
            }
        }
        Ok(true)
    })
}

/// Frees Main, or a session; shuts it down before, if that was not done. Any thread, and no other may use `main` any more.
/// Blocks as `weir_main_shutdown` does, but in a callback on Main's thread it does not wait. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_free(main: Option<Box<weir_main>>) {
    run_infallible(|| {
        let Some(main) = main else { return };
        if let Holds::Main(whole) = main.holds {
            // Refused on Main's thread, and Main then ends by itself. An end by a fault has been logged.
            let _panicked = whole.main.into_inner().map(Main::shutdown_blocking);
        }
    });
}

impl weir_main {
    pub(crate) fn new(main: Main, work: Work) -> Self {
        let client = main.client().clone();
        let (control, hooks, peers) = (main.control().clone(), main.hooks().clone(), main.peers().clone());
        let whole = Whole { control, hooks, peers, main: Mutex::new(Some(main)) };
        Self { client, work, has_ended: AtomicBool::new(false), holds: Holds::Main(whole.into()) }
    }

    pub(crate) fn of_session(client: Client, work: Work, session: Held) -> Self {
        Self { client, work, has_ended: AtomicBool::new(false), holds: Holds::Session(session) }
    }

    pub(crate) fn control(&self) -> Result<&Control, weir_error> {
        self.whole().map(|whole| &whole.control)
    }

    pub(crate) fn hooks(&self) -> Result<&Hooks, weir_error> {
        self.whole().map(|whole| &whole.hooks)
    }

    pub(crate) fn peers(&self) -> Result<&Peers, weir_error> {
        self.whole().map(|whole| &whole.peers)
    }

    pub(crate) fn session(&self) -> Result<&Held, weir_error> {
        match &self.alive()?.holds {
            Holds::Session(session) => Ok(session),
            Holds::Main(_) => {
                Err(weir_error::argument("`session` is Main, which serves what its builder was given"))
            }
        }
    }

    fn whole(&self) -> Result<&Whole, weir_error> {
        match &self.alive()?.holds {
            Holds::Main(whole) => Ok(whole),
            Holds::Session(_) => {
                Err(Error::PermissionDenied("only Main's own handle steers Main".to_owned()).into())
            }
        }
    }

    /// Fails once Main is shut down: nothing may use the handles of that Main any more.
    pub(crate) fn alive(&self) -> Result<&Self, weir_error> {
        if self.has_ended.load(Ordering::Acquire) { Err(weir_error::ended()) } else { Ok(self) }
    }
}

/// Fails in a callback on Main's thread.
pub(crate) fn refuse_on_mains_thread() -> Result<(), weir_error> {
    wait_for(std::time::Duration::ZERO, std::future::ready(())).map(drop).map_err(Into::into)
}
