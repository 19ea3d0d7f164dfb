//! A running Main.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use weir_host::{Client, Control, Main, blocking::wait_for, hooks::Hooks};

use crate::{
    c::{ErrorOut, given, run, run_infallible},
    error::weir_error,
    work::Work,
};

/// A running Main. Any number of threads may use it at once. Free it with `weir_main_free`, after all other threads are
/// done with it. Handles that came from it, such as queues, may be freed before or after.
#[derive(Debug)]
pub struct weir_main {
    pub(crate) client: Client,
    pub(crate) control: Control,
    pub(crate) hooks: Hooks,
    pub(crate) work: Work,
    has_ended: AtomicBool,
    main: Mutex<Option<Main>>,
}

/// Stops every extension, and waits for the last: at most for the longest `stop-timeout` and a second. Calls under way
/// fail. After that every function of this Main fails with `WEIR_ERROR_KIND_ENDED`. Blocks: not in a callback on Main's
/// thread.
///
/// Errors: `WEIR_ERROR_KIND_ENDED` if it was shut down before, `WEIR_ERROR_KIND_PANIC` if it had ended by a fault of its
/// own.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_shutdown(main: Option<&weir_main>, error: ErrorOut) -> bool {
    run(error, || {
        let main = given(main, "main")?;
        refuse_on_mains_thread()?;
        main.has_ended.store(true, Ordering::Release);
        let running = main.main.lock().take();
        running.ok_or_else(weir_error::ended)?.shutdown_blocking()?;
        Ok(true)
    })
}

/// Frees Main; shuts it down before, if that was not done. Any thread, and no other may use `main` any more. Blocks as
/// `weir_main_shutdown` does, but in a callback on Main's thread it does not wait. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_free(main: Option<Box<weir_main>>) {
    run_infallible(|| {
        // Refused on Main's thread, and Main then ends by itself. An end by a fault has been logged.
        let running = main.and_then(|main| main.main.lock().take());
        let _panicked = running.map(Main::shutdown_blocking);
    });
}

impl weir_main {
    pub(crate) fn new(main: Main, work: Work) -> Self {
        let (client, control) = (main.client().clone(), main.control().clone());
        let (hooks, has_ended) = (main.hooks().clone(), AtomicBool::new(false));
        Self { client, control, hooks, work, has_ended, main: Mutex::new(Some(main)) }
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
