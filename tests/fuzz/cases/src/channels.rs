//! Calls of `weir:iec` by a guest, in any order and with any arguments.

mod interpreter;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use weir_host::{
    CallOptions, Error, ExtensionConfig, MainConfig, control::ExtensionState, limits::LimitValue,
};

use crate::{
    scratch,
    stage::{PATIENCE, Stage, extension, extension_at},
};

/// Time for the answer to a program. Some programs wait without end.
const DEADLINE: Duration = Duration::from_millis(40);

/// Programs of one input. The first finds the others in its inbox.
const PROGRAMS: usize = 4;

thread_local! {
    static STAGE: Stage = {
        let (dir, component) = (scratch(), interpreter::component());
        // It only runs, so that their component is compiled once and a restart takes no time.
        let twin = extension(&dir, "twin", &component);
        Stage::new(dir, MainConfig::default(), vec![fuzz(twin.component.path().unwrap().to_owned()), twin])
    };
}

fn fuzz(path: PathBuf) -> ExtensionConfig {
    let mut fuzz = extension_at("fuzz", path);
    fuzz.fulfills = vec!["fuzz@1".parse().unwrap()];
    fuzz.wants = ["echo@1", "fuzz@1", "nobody@1"].map(|contract| contract.parse().unwrap()).to_vec();
    fuzz.publishes = vec!["fuzz.>".parse().unwrap()];
    fuzz.subscribes = vec!["fuzz.>".parse().unwrap()];
    fuzz.limits.ready_timeout = PATIENCE;
    fuzz.limits.stop_timeout = DEADLINE;
    fuzz
}

/// Splits the input at each `0xff`, and sends the parts to a guest that runs them: as simultaneous requests,
/// and one event. Then restarts the guest.
///
/// Each request is answered once, by the deadline. Afterwards nothing is left over, the extension can be
/// started, and its neighbour serves.
pub fn channels(data: &[u8]) {
    STAGE.with(|stage| stage.runtime.block_on(run(stage, data)));
}

async fn run(stage: &Stage, data: &[u8]) {
    let client = stage.main.client();
    let mut programs = data.split(|byte| *byte == 0xff).take(PROGRAMS).map(<[u8]>::to_vec);
    let ask = |program: Vec<u8>| async {
        let start = Instant::now();
        let options = CallOptions::default().timeout(DEADLINE);
        let answer = client.call_with("fuzz@1", "run", program, options).await;
        assert!(start.elapsed() < DEADLINE + PATIENCE, "it was answered after {:?}", start.elapsed());
        check_answer(&answer);
    };
    let first = ask(programs.next().unwrap_or_default());
    let others = futures_util::future::join_all(programs.map(ask));
    let all = async {
        client.publish("fuzz.a", "from Main").await.unwrap();
        first.await;
        // Main answers the taken requests in its place. The next instance takes the rest.
        stage.main.control().restart("fuzz").await.unwrap();
    };
    tokio::join!(all, others);
    stage.main.control().restart("fuzz").await.unwrap();

    stage.check().await;
    let status = stage.main.control().status("fuzz").unwrap();
    assert!(matches!(status.state, ExtensionState::Ready | ExtensionState::Interrupted), "{status:?}");
    let limits = stage.main.control().limits_of("fuzz").await.unwrap();
    let in_flight = limits.extensions[0].limits.iter().find(|limit| limit.key == "in-flight").unwrap();
    assert_eq!(in_flight.used, Some(LimitValue::Count(0)), "requests are left over");
}

/// Main's own requests fail only because of the extension.
fn check_answer(answer: &Result<impl Sized, Error>) {
    match answer {
        Ok(_) | Err(Error::Handler(_) | Error::Timeout | Error::PeerGone | Error::Trapped) => {}
        Err(Error::NoProvider(_) | Error::NotReady(_) | Error::Overloaded(_) | Error::TooLarge { .. }) => {}
        Err(other) => panic!("it was answered {other:?}"),
    }
}
