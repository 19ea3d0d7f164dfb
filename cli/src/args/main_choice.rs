//! The Main that a command talks to, given before or after the command's name.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::{
    Args, CallArgs, Command, EndArgs, IdArgs, LimitsArgs, LogsArgs, MetricsArgs, OrderArgs, PeersArgs,
    PeersCommand, PlanArgs, PsArgs, PublishArgs, PutArgs, QueuesArgs, QueuesCommand, ReloadArgs, RequeueArgs,
    ShowArgs, ShutdownArgs, TailArgs, TopicsArgs, TraceArgs,
};
#[cfg(feature = "tools")]
use super::{DescribeArgs, GenerateArgs, TopArgs};
use crate::exit::Usage;

/// Which Main.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct Target {
    /// The control socket of Main; also WEIR_SOCKET
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,
    /// Take the control socket from this configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// Which Main, and how its answer is printed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Asked {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

impl Target {
    fn is_given(&self) -> bool {
        self.socket.is_some() || self.config.is_some()
    }
}

impl Args {
    /// Moves the choice before the command into the command.
    pub(crate) fn into_command(self) -> anyhow::Result<Command> {
        let Self { target, mut command } = self;
        if !target.is_given() {
            return Ok(command);
        }
        if let Command::Run(run) = &mut command
            && let (None, Some(socket)) = (&run.socket, &target.socket)
        {
            run.socket = Some(socket.clone());
            return Ok(command);
        }
        match command.target() {
            Some(own) if !own.is_given() => *own = target,
            Some(_) => {
                return Err(Usage(
                    "`--socket` or `--config` is given before and after the command: give it once".to_owned(),
                )
                .into());
            }
            None => {
                return Err(Usage(
                    "`--socket` and `--config` before the command fit only commands that talk to a running Main"
                        .to_owned(),
                )
                .into());
            }
        }
        Ok(command)
    }
}

impl Command {
    fn target(&mut self) -> Option<&mut Target> {
        match self {
            #[cfg(feature = "otlp")]
            Self::Otlp(super::OtlpArgs { target, .. }) => Some(target),
            #[cfg(feature = "store")]
            Self::Store(super::StoreArgs { command }) => Some(command.target()),
            #[cfg(feature = "tools")]
            Self::Top(TopArgs { target, .. })
            | Self::Describe(DescribeArgs { target, .. })
            | Self::Generate(GenerateArgs { target, .. }) => Some(target),
            Self::Ps(PsArgs { asked, .. })
            | Self::Status(IdArgs { asked, .. })
            | Self::History(IdArgs { asked, .. })
            | Self::Limits(LimitsArgs { file: None, asked, .. })
            | Self::Publish(PublishArgs { asked, .. })
            | Self::Topics(TopicsArgs { asked, .. })
            | Self::Queues(
                QueuesArgs { command: None, asked }
                | QueuesArgs {
                    command:
                        Some(
                            QueuesCommand::Show(ShowArgs { asked, .. })
                            | QueuesCommand::Put(PutArgs { asked, .. })
                            | QueuesCommand::Requeue(RequeueArgs { asked, .. }),
                        ),
                    ..
                },
            )
            | Self::Peers(
                PeersArgs { command: None, asked }
                | PeersArgs { command: Some(PeersCommand::End(EndArgs { asked, .. })), .. },
            )
            | Self::Reload(ReloadArgs { asked, .. })
            | Self::Plan(PlanArgs { asked, .. }) => Some(&mut asked.target),
            Self::Logs(LogsArgs { target, .. })
            | Self::Call(CallArgs { target, .. })
            | Self::Tail(TailArgs { target, .. })
            | Self::Metrics(MetricsArgs { target, .. })
            | Self::Trace(TraceArgs { target, .. })
            | Self::Start(OrderArgs { target, .. })
            | Self::Stop(OrderArgs { target, .. })
            | Self::Restart(OrderArgs { target, .. })
            | Self::Shutdown(ShutdownArgs { target }) => Some(target),
            #[cfg(feature = "compiler")]
            Self::New(_)
            | Self::Build(_)
            | Self::Dev(_)
            | Self::Test(_)
            | Self::Compile(_)
            | Self::Keygen(_) => None,
            #[cfg(feature = "tools")]
            Self::CheckContract(_) | Self::Inspect(_) | Self::Symbolise(_) => None,
            Self::Run(_)
            | Self::Check(_)
            | Self::Schema
            | Self::Limits(_)
            | Self::Peers(_)
            | Self::Hooks(_)
            | Self::Completions { .. } => None,
        }
    }
}
