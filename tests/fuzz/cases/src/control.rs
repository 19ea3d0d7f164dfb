//! Input to the control socket of a running Main.

mod answer;
mod conversation;
mod request;

use std::{cell::RefCell, fs, time::Instant};

use arbitrary::{Arbitrary, Unstructured};
use weir_control::ControlSocket;
use weir_host::{Main, control::ControlError};

use self::{conversation::Conversation, request::Request};
use crate::{
    scratch,
    stage::{PATIENCE, Stage, echo_component},
};

const MOST_STEPS: usize = 16;

const FILE: &str = r#"
[main]
control-socket = "weir.sock"

[limits.small]
inherits = "min"
memory = "1 MiB"
cpu-share = "100%"

[[extension]]
id = "echo"
path = "echo.wasm"
class = "small"
fulfills = ["echo@1"]

[[extension]]
id = "second"
path = "echo.wasm"
class = "small"
reload = "overlap"

[[extension]]
id = "absent"
path = "absent.wasm"
fulfills = ["absent@1"]
restart.policy = "never"
"#;

#[derive(Debug, Arbitrary)]
enum Step<'a> {
    Ask(Request<'a>),
    /// Sends bytes, closes its side, and reads the answers.
    Send(&'a [u8]),
}

impl Step<'_> {
    fn may_end_main(&self) -> bool {
        const ROUTE: &[u8] = b"/v1/shutdown";
        let is_in = |bytes: &[u8]| bytes.windows(ROUTE.len()).any(|window| window == ROUTE);
        match self {
            Self::Ask(request) => is_in(&request.bytes()),
            Self::Send(bytes) => is_in(bytes),
        }
    }
}

thread_local! {
    static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) };
}

/// Sends the input: bytes if it starts with `R`, else requests and bytes as `arbitrary` reads them.
///
/// Every answer is HTTP. Afterwards Main answers there and the extensions serve. Main ends only if a request
/// asks for it.
pub fn control(data: &[u8]) {
    let steps: Vec<Step<'_>> = match data.split_first() {
        Some((b'R', bytes)) => vec![Step::Send(bytes)],
        _ => match Unstructured::new(data).arbitrary_take_rest_iter() {
            Ok(steps) => steps.take(MOST_STEPS).map_while(Result::ok).collect(),
            Err(_) => return,
        },
    };
    STAGE.with_borrow_mut(|stage| {
        let running = stage.get_or_insert_with(start);
        Conversation::with(running).hold(&steps);
        if steps.iter().any(Step::may_end_main) {
            *stage = None;
        } else {
            running.runtime.block_on(check(running));
        }
    });
}

fn start() -> Stage {
    let dir = scratch();
    fs::write(dir.path().join("echo.wasm"), echo_component()).unwrap();
    let file = dir.path().join("weir.toml");
    fs::write(&file, FILE).unwrap();
    let mut config = weir_host::load(&file).unwrap();
    config.main.cache_size = Some(0);
    let socket = ControlSocket::bind(&config.main.control_socket).unwrap();
    Stage::start(Main::builder(config).attach(|attached| socket.serve(attached)), dir)
}

/// Restarts what requests have stopped, and compares the state with the first.
async fn check(stage: &Stage) {
    let control = stage.main.control();
    for id in ["echo", "second"] {
        let start = Instant::now();
        while let Err(error) = control.start(id).await {
            let is_on_its_way = matches!(error, ControlError::Reloading(_) | ControlError::NotStarted { .. });
            assert!(is_on_its_way && start.elapsed() < PATIENCE, "{error}");
        }
    }
    stage.check().await;
    let answer =
        Conversation::with(stage).ask(b"GET /v1/version HTTP/1.1\r\nhost: weir\r\n\r\n", true, PATIENCE);
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "Main does not answer");
}
