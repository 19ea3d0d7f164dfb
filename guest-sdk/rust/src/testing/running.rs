//! A test's side of an extension in a real Main, which `weir test` starts.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    process::{Command, Stdio},
};

use crate::{
    Error, Operation,
    codec::{Decode, Encode},
};

/// The Main that `weir test` has started for this test, with the project's own `weir.toml`.
///
/// ```
/// use weir_sdk::{Contract, Operation, testing::running::RunningMain};
///
/// const GREETER: Contract = Contract::new("greeter@1");
/// const GREET: Operation<String, String> = GREETER.operation("greet");
///
/// // Under plain `cargo test` there is no Main.
/// if let Some(main) = RunningMain::from_env() {
///     assert_eq!(main.call(GREET, &"Ada".to_owned()).unwrap(), "hello Ada");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct RunningMain {
    weir: OsString,
    socket: OsString,
}

/// Why a call of a running extension gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The `weir` command could not be run.
    #[error("cannot run `weir`")]
    Command(#[from] io::Error),
    /// The call failed: no provider, a timeout, or an error of the handler.
    #[error("{message}")]
    Failed {
        /// The exit code of `weir call`, such as 7 for an error of the handler or 8 for a provider that cannot answer.
        /// `None` if a signal ended it.
        code: Option<i32>,
        /// What `weir call` says of the failure.
        message: String,
    },
    /// The arguments or the result do not fit their type.
    #[error("the payload does not fit its type: {0}")]
    Payload(Error),
}

impl RunningMain {
    /// The Main of this test, from the variables `WEIR` and `WEIR_SOCKET`. `None` outside `weir test`.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        Some(Self { weir: env::var_os("WEIR")?, socket: env::var_os("WEIR_SOCKET")? })
    }

    /// Calls an operation, as `weir call` does. The arguments are not checked before they are sent.
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    pub fn call<A, R, C: Encode<A> + Decode<R>>(
        &self,
        operation: Operation<A, R, C>,
        arguments: &A,
    ) -> Result<R, CallError> {
        let arguments = C::encode(arguments).map_err(CallError::Payload)?;
        let mut call = self.command();
        call.args(["call", "--raw", operation.contract().name(), operation.name(), "-"]);
        let mut call = call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = call.stdin.take() {
            // Writing fails if the command ends early. Its output then says why.
            let _ended_early = stdin.write_all(&arguments);
        }
        let output = call.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let message = said.trim().trim_start_matches("error: ").to_owned();
            return Err(CallError::Failed { code: output.status.code(), message });
        }
        C::decode(output.stdout).map_err(|error| CallError::Payload(Error::invalid_argument(error)))
    }

    /// The `weir` command for this Main. Add its arguments: for example `publish`, a topic and a payload.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.weir);
        command.env("WEIR_SOCKET", &self.socket);
        command
    }
}
