//! Tells systemd how far the bridge is, as sd_notify(3) says. Does nothing without `NOTIFY_SOCKET`.

use sd_notify::NotifyState;

/// All is served and subscribed.
pub(crate) fn ready() {
    tell(&NotifyState::Ready);
}

/// The bridge stops.
pub(crate) fn stopping() {
    tell(&NotifyState::Stopping);
}

fn tell(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!("cannot tell the service manager {state:?}: {error}");
    }
}
