//! The bridge as a whole: its two connections, and what each brings with it.
//!
//! Both connections live and end apart. What serves this Main (imported contracts, exported topics and queues) lives with the
//! session of Main, and looks for a link when it needs one. What serves other nodes lives while both are there.

use std::{pin::pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use sd_notify::NotifyState;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
    task::JoinSet,
    time,
};

use crate::{
    config::Config,
    contracts, events, jobs,
    link::{self, Link},
    sessions::Sessions,
    shared::{Pause, Shared, Stage, tell},
};

/// Time to tell other nodes what became of their calls, when Main is away or the bridge stops.
const LAST_TIME: Duration = Duration::from_secs(1);

/// Time for the server to send back what this link has sent.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// Time for the client to tell of refusals.
const REFUSAL_TIME: Duration = Duration::from_millis(20);

/// Time to answer what is in hand and to leave the sessions, once the bridge waits no longer.
const LEAVE_TIME: Duration = Duration::from_secs(3);

/// Time for the server to read the last answers.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The link, while there is one.
pub(crate) type Links = watch::Receiver<Option<Link>>;

/// Runs the bridge until SIGTERM or SIGINT, and then until what is in hand is done.
///
/// # Errors
/// A signal handler that cannot be set up.
pub async fn run(config: Config) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let drain_time = config.limits.drain_timeout.get();
    let shared = Arc::new(Shared::new(config));
    let (sender, links) = watch::channel(None);
    let (mut nats, mut main) = (JoinSet::new(), JoinSet::new());
    nats.spawn(link::keep(shared.clone(), sender));
    main.spawn(keep_main(shared.clone(), links));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    notify(&NotifyState::Stopping);
    tracing::info!("stops when what is in hand is done");
    shared.enter(Stage::Draining);
    tokio::select! {
        // The task ends when nothing is in hand any more.
        _ = main.join_next() => {}
        () = time::sleep(drain_time) => tracing::warn!("stops with something in hand: its time is over"),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    shared.enter(Stage::Stopped);
    // What is in hand is answered now, unless Main hangs or the server does.
    drop(time::timeout(LEAVE_TIME, main.join_next()).await);
    main.shutdown().await;
    nats.shutdown().await;
    Ok(())
}

/// Keeps a session with Main until the bridge stops.
async fn keep_main(shared: Arc<Shared>, links: Links) {
    let (mut pause, mut draining) = (Pause::default(), shared.draining());
    loop {
        let sessions = tokio::select! {
            sessions = Sessions::begin(&shared) => sessions,
            () = draining.wait() => return,
        };
        match sessions {
            Ok(sessions) => {
                pause.reset();
                tracing::info!("connected to Main as `{}`", shared.config.peer());
                let ended = with_main(&sessions, links.clone()).await;
                if shared.is_draining() {
                    sessions.leave().await;
                    return;
                }
                tracing::warn!("Main is away: {ended}");
            }
            Err(error) => {
                tell!(warn, shared.times, ("main: {error:#}"), "Main is away: {error:#}");
            }
        }
        tokio::select! {
            () = pause.wait() => {}
            () = draining.wait() => return,
        }
    }
}

/// Runs everything that lives with a session with Main. Returns why the session ended, or that the bridge stops.
async fn with_main(sessions: &Sessions, links: Links) -> String {
    let shared = &sessions.shared;
    // All tasks end when this set is dropped, at the end of the function.
    let mut tasks = JoinSet::new();
    let begin = async {
        contracts::import(sessions, &links, &mut tasks).await;
        jobs::export(sessions, &links, &mut tasks).await;
        events::export(sessions, &links, &mut tasks).await
    };
    let publisher = tokio::select! {
        publisher = begin => publisher,
        ended = sessions.ended() => return ended,
        () = async { shared.draining().wait().await } => return "the bridge stops".to_owned(),
    };
    let ended = with_links(sessions, links, &publisher).await;
    if shared.is_draining() {
        finish(&mut tasks, async { shared.stopped().wait().await }).await;
    }
    ended
}

/// Waits until all tasks have ended, each with nothing in hand, or until `or` is over.
async fn finish(tasks: &mut JoinSet<()>, or: impl Future<Output = ()>) {
    tokio::select! {
        () = async { while tasks.join_next().await.is_some() {} } => {}
        () = or => {}
    }
}

/// Runs, on each link, everything that needs both connections. Returns why it ended: the session did, or the bridge
/// drains.
async fn with_links(sessions: &Sessions, mut links: Links, publisher: &events::Publisher) -> String {
    let shared = &sessions.shared;
    let stops = || "the bridge stops".to_owned();
    let mut draining = shared.draining();
    let mut session_ended = pin!(sessions.ended());
    loop {
        let link = tokio::select! {
            link = links.wait_for(Link::is_there) => link.ok().and_then(|link| link.clone()),
            ended = &mut session_ended => return ended,
            () = draining.wait() => return stops(),
        };
        let Some(link) = link else { return stops() };
        let mut tasks = JoinSet::new();
        let set_up = set_up(sessions, &link, publisher, &mut tasks);
        let has_ended = tokio::select! {
            set_up = set_up => {
                match set_up {
                    Ok(()) => {
                        tracing::info!("ready");
                        notify(&NotifyState::Ready);
                    }
                    Err(error) => tracing::error!("cannot use NATS: {error:#}"),
                }
                None
            }
            () = link.ended() => continue,
            ended = &mut session_ended => Some(ended),
            () = draining.wait() => None,
        };
        let ended = match has_ended {
            Some(ended) => ended,
            None => tokio::select! {
                () = link.ended() => continue,
                ended = &mut session_ended => ended,
                () = draining.wait() => {
                    let too_late = async {
                        tokio::select! {
                            () = link.ended() => {}
                            () = async {
                                shared.stopped().wait().await;
                                time::sleep(LAST_TIME).await;
                            } => {}
                        }
                    };
                    finish(&mut tasks, too_late).await;
                    // The last answers may still wait to be written. If they cannot be, the link has ended.
                    drop(time::timeout(FLUSH_TIME, link.settle()).await);
                    return stops();
                }
            },
        };
        // Without Main all calls and jobs in hand fail at once. The tasks tell the other nodes and JetStream.
        finish(&mut tasks, time::sleep(LAST_TIME)).await;
        return ended;
    }
}

/// Serves and subscribes everything. Returns once the server has read that, and all streams are there or were tried
/// several times. Fails if the server refuses something.
async fn set_up(
    sessions: &Sessions,
    link: &Link,
    publisher: &events::Publisher,
    tasks: &mut JoinSet<()>,
) -> Result<()> {
    // Nothing is sent on this channel. It is closed once the last task has dropped its sender.
    let (prepared, mut preparing) = mpsc::channel::<()>(1);
    jobs::import(sessions, link, tasks, &prepared)?;
    drop(prepared);
    contracts::export(sessions, link, tasks).await?;
    events::import(sessions, link, tasks).await?;
    time::timeout(SETTLE_TIME, link.settle())
        .await
        .context("the server does not send what it was sent")??;
    publisher.refresh(link).await;
    preparing.recv().await;
    // The client tells what the server has refused in another way, a moment later.
    time::sleep(REFUSAL_TIME).await;
    match link.first_refused() {
        None => Ok(()),
        Some(refused) => bail!("the server refuses something, so not all is served: {refused}"),
    }
}

/// Tells systemd how far the bridge is, as sd_notify(3) says. Does nothing without `NOTIFY_SOCKET`.
fn notify(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!("cannot tell the service manager {state:?}: {error}");
    }
}
