//! What happens to extensions and to Main: states, failures, losses.

use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

use futures_util::FutureExt;
use weir_host::{attached::Attached, events::MainEvent};

use crate::c::{Callback, text};

/// What an event of Main is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weir_main_event_kind {
    /// An extension changed its state. JSON: `extension`, `from`, `to`, and perhaps `reason`.
    State = 1,
    /// An extension failed. JSON: `extension`, `time`, `cause`, `then`, and perhaps `hash`, `handling`, `limit`, `trace`
    /// and `next-restart`.
    Failed = 2,
    /// An inbox or queue had no room for messages. Sent at the 1st, 2nd, 4th, 8th and so on. JSON: `receiver`, `total`.
    Shed = 3,
    /// Main has begun to stop every extension, and will end.
    Stopping = 4,
    /// Main reloads its configuration.
    Reloading = 5,
    /// The reload is done, or was refused.
    Reloaded = 6,
    /// The callback was too slow and missed events. JSON: `missed`.
    Lagged = 7,
    /// An event of a later version. Its JSON says what it is.
    Other = 8,
    /// A version of an extension was proven or refused. JSON: `extension`, `time`, `version`, `standing`, `serves`,
    /// `reason`, `requests`, `failed`, `memory`, and perhaps `p99`.
    Version = 9,
}

/// An event of Main.
#[derive(Debug)]
pub struct weir_main_event {
    kind: weir_main_event_kind,
    extension: Option<CString>,
    json: CString,
}

/// Takes an event of Main, which lives until the function returns. It runs on Main's thread: it must not wait, and must
/// not throw.
pub type weir_on_main_event = Option<extern "C" fn(event: &weir_main_event, data: *mut c_void)>;

pub(crate) type OnMainEvent = extern "C" fn(&weir_main_event, *mut c_void);

/// What the event is. `WEIR_MAIN_EVENT_KIND_OTHER` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_event_kind_of(event: Option<&weir_main_event>) -> weir_main_event_kind {
    event.map_or(weir_main_event_kind::Other, |event| event.kind)
}

/// The extension of a state, a failure or a version; NULL for other events. The text lives as long as `event`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_event_extension(event: Option<&weir_main_event>) -> *const c_char {
    let extension = event.and_then(|event| event.extension.as_deref());
    extension.map_or(ptr::null(), std::ffi::CStr::as_ptr)
}

/// The whole event as a JSON object, with its kind as `event`. The text lives as long as `event`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_main_event_json(event: Option<&weir_main_event>) -> *const c_char {
    event.map_or(ptr::null(), |event| event.json.as_ptr())
}

/// Calls back for each event, until Main has stopped everything else.
pub(crate) async fn listen(mut attached: Attached, callback: Callback<OnMainEvent>) {
    let mut events = attached.control.events();
    let tell = |event: &MainEvent| {
        let (function, data) = callback.function();
        function(&weir_main_event::new(event), data);
    };
    loop {
        let event = tokio::select! {
            () = attached.closed.wait() => break,
            event = events.next() => event,
        };
        let Some(event) = event else { return };
        tell(&event);
        tokio::task::coop::consume_budget().await;
    }
    // Main has closed attached work, but the stream ends only later: reads what is in it now.
    while let Some(Some(event)) = events.next().now_or_never() {
        tell(&event);
    }
}

impl weir_main_event {
    fn new(event: &MainEvent) -> Self {
        let extension = match event {
            MainEvent::State { extension, .. } | MainEvent::Version { extension, .. } => Some(extension),
            MainEvent::Failed(failure) => Some(&failure.extension),
            _ => None,
        };
        // An event consists of strings and numbers, so this does not fail.
        let json = serde_json::to_string(event).unwrap_or_else(|_| "{}".to_owned());
        Self { kind: kind(event), extension: extension.map(|id| text(id.as_str())), json: text(json) }
    }
}

fn kind(event: &MainEvent) -> weir_main_event_kind {
    match event {
        MainEvent::State { .. } => weir_main_event_kind::State,
        MainEvent::Failed(_) => weir_main_event_kind::Failed,
        MainEvent::Version { .. } => weir_main_event_kind::Version,
        MainEvent::Shed { .. } => weir_main_event_kind::Shed,
        MainEvent::Stopping => weir_main_event_kind::Stopping,
        MainEvent::Reloading => weir_main_event_kind::Reloading,
        MainEvent::Reloaded => weir_main_event_kind::Reloaded,
        MainEvent::Lagged { .. } => weir_main_event_kind::Lagged,
        _ => weir_main_event_kind::Other,
    }
}
