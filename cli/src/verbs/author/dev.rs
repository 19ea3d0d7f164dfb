//! `weir dev`: builds and runs a project again after each change.

use std::{
    collections::BTreeMap,
    fs, future, io,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use clap::ValueHint;
use serde_json::Value;

use super::{
    build::{Descriptions, build},
    group::Group,
    private_main::{PrivateMain, gateway, this_command, variables, weir},
    project::{Project, to_stderr},
    sources,
    watch::Watch,
};
use crate::{
    client::{Client, Interrupted, Route, until_interrupted},
    exit,
    output::{self, printable},
    verbs::{ps::Extensions, tail::Event},
};

/// The pause between two looks at the counts of messages.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Builds the project, runs its `weir.toml` in a Main of its own, and does so again after each change of a file.
Prints the socket of that Main for other commands, and then its log, its events, and the messages that its
extensions receive. If a build fails, the version before goes on. Ctrl-C ends everything.

Examples:
  weir dev
  weir dev ../greeter")]
pub(crate) struct Args {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

pub(in crate::verbs) async fn run(args: Args) -> anyhow::Result<()> {
    match until_interrupted(develop(&args.dir)).await {
        // Ctrl-C is the usual end of `weir dev`.
        Err(error) if error.is::<Interrupted>() => Ok(()),
        other => other,
    }
}

/// The parts of the project that run now.
#[derive(Default)]
struct Running {
    // The program speaks with Main, so it is dropped before Main.
    program: Option<Group>,
    main: Option<PrivateMain>,
}

async fn develop(dir: &Path) -> anyhow::Result<()> {
    this_command()?;
    // A project that cannot be read now ends the command. Later mistakes are printed, and wait for the next change.
    let project = Project::load(dir)?;
    let mut watch = Watch::new(&project.dir, project.written())?;
    follow(&mut watch, &project)?;
    let mut running = Running::default();
    loop {
        if let Err(error) = renew(dir, &mut running).await {
            exit::say(&error);
            if running.main.is_some() {
                say("the version before goes on");
            }
        }
        let during = watch.built().await?;
        if let Ok(project) = Project::load(dir) {
            follow(&mut watch, &project)?;
        }
        for path in during.written {
            say(&format!(
                "the build itself changes `{}`: that starts no other build",
                shown_path(dir, &path)
            ));
        }
        if let Some(path) = during.saved.first() {
            say(&format!("`{}` changed during the build", shown_path(dir, path)));
            continue;
        }
        say("waiting for changes");
        loop {
            tokio::select! {
                changed = watch.changed() => break changed?,
                () = running.part_ended() => {}
            }
        }
    }
}

/// Watches the packages that the project depends on now, and leaves out the paths that it writes now.
fn follow(watch: &mut Watch, project: &Project) -> anyhow::Result<()> {
    watch.follow(sources::of_dependencies(project), project.written())
}

/// Builds the project, starts or reloads its Main, starts its program again, and runs its hooks once.
async fn renew(dir: &Path, running: &mut Running) -> anyhow::Result<()> {
    let project = Project::load(dir)?;
    build(&project, &Descriptions::default()).await?;
    if !project.config.extensions.is_empty() || !project.config.peers.is_empty() {
        match &running.main {
            None => running.main = Some(start(&project).await?),
            Some(main) => reload(main).await?,
        }
    }
    if let (Some(mut program), Some(main)) = (project.program(), &running.main) {
        running.program = None;
        program.envs(variables(&project, main)?).stdout(to_stderr()?);
        running.program = Some(Group::spawn(&mut program)?);
        say("the program has started");
    }
    for (name, _) in project.hooks() {
        let mut hooks = weir()?;
        hooks.args(["hooks", "run", "--config"]).arg(project.file()).arg(name).stdout(to_stderr()?);
        // `weir hooks run` itself prints what failed.
        Group::spawn(&mut hooks)?.wait().await?;
    }
    Ok(())
}

async fn start(project: &Project) -> anyhow::Result<PrivateMain> {
    let main = PrivateMain::start(project, to_stderr()?).await?;
    say("for `weir` in another terminal:");
    output::line(&format!("export WEIR_SOCKET={}", main.socket().display()))?;
    let servers = project.config.extensions.iter().filter_map(|it| Some((&it.id, it.serves_http.as_ref()?)));
    let mounts = servers.filter(|(_, http)| http.is_mounted());
    for ((id, http), address) in mounts.filter_map(|mount| Some((mount, gateway(project)?))) {
        say(&format!("`{id}` answers at http://{address}{}", http.path));
    }
    tokio::spawn(observe(main.socket()));
    Ok(main)
}

async fn reload(main: &PrivateMain) -> anyhow::Result<()> {
    let answer = main.connect().await?.post(&Route::new(&["reload"])).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let listed = |key: &str| answer.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    for id in [listed("added"), listed("changed")].concat() {
        say(&format!("{} runs as it was built now", printable(&id.to_string())));
    }
    for failed in listed("failed") {
        let part = |key: &str| failed.get(key).unwrap_or_default().to_string();
        let (id, reason) = (part("extension"), part("reason"));
        say(&format!("{} did not come up: {}", printable(&id), printable(&reason)));
    }
    for restart in [listed("needs-restart"), listed("tables-for-restart")].concat() {
        say(&format!("start `weir dev` again for the change of {}", printable(&restart.to_string())));
    }
    Ok(())
}

impl Running {
    /// Waits until Main or the program ends by itself, and says so.
    async fn part_ended(&mut self) {
        let Self { program, main } = self;
        tokio::select! {
            status = end_of(program.as_mut()) => {
                self.program = None;
                say(&format!("the program has ended: {}", shown(status)));
            }
            status = end_of(main.as_mut().map(|main| &mut main.group)) => {
                self.main = None;
                say(&format!("Main has ended: {}; it starts again with the next change", shown(status)));
            }
        }
    }
}

/// Waits for the end of the group's child. Without a group, waits for ever.
async fn end_of(group: Option<&mut Group>) -> io::Result<ExitStatus> {
    match group {
        Some(group) => group.wait().await,
        None => future::pending().await,
    }
}

fn shown(status: io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| exit::chain(&error.into()), |status| status.to_string())
}

fn shown_path(dir: &Path, path: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_default();
    printable(&path.strip_prefix(dir).unwrap_or(path).display().to_string()).to_string()
}

pub(super) fn say(text: &str) {
    output::complain(&format!("weir dev: {text}"));
}

/// Shows what passes through Main, until it ends: events, and how many messages each extension received.
async fn observe(socket: PathBuf) {
    let ended: anyhow::Result<()> = tokio::select! {
        ended = events(&socket) => ended,
        ended = messages(&socket) => ended,
    };
    // The log says why Main ended.
    drop(ended);
}

async fn events(socket: &Path) -> anyhow::Result<()> {
    let route = Route::new(&["events"]).with("pattern", Some(">"));
    let mut lines = Client::connect_to(socket).await?.stream(&route).await?;
    while let Some(line) = lines.next().await? {
        let event: Event<'_> = serde_json::from_slice(&line)?;
        let (topic, sender) = (printable(&event.topic), printable(&event.sender));
        output::complain(&format!("event `{topic}` from `{sender}`: {}", event.shown_payload()));
    }
    Ok(())
}

async fn messages(socket: &Path) -> anyhow::Result<()> {
    let mut client = Client::connect_to(socket).await?;
    let mut seen = BTreeMap::new();
    loop {
        let Extensions { extensions } = client.get(&Route::new(&["extensions"])).await?;
        for extension in extensions {
            let received = extension.received;
            let before = seen.insert(extension.id.clone(), received).unwrap_or_default();
            if let Some(new @ 1..) = received.checked_sub(before) {
                let id = &extension.id;
                let new = output::counted(new, "message");
                output::complain(&format!("`{id}` received {new}, {received} so far"));
            }
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
