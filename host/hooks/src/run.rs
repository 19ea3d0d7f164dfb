//! One run of a directory's hooks, and its input.

use std::{
    collections::BTreeMap,
    io, iter,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use weir_config::LimitName;
use weir_guest::{Cut, Dirs, End, Ended, FileStamp, Loaded, RunsOn, Sandbox, Surroundings, WasiCommand};

use crate::{
    HookDirConfig, HookError, HookOutcome, HookReport, HookRun,
    files::{self, HookFile, MAX_HOOKS},
    hooks::{Dir, Gate},
    told,
};

/// The input of one run of a directory, the same for each hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCall {
    /// Parameters: environment variables that override all others.
    pub params: BTreeMap<String, String>,
    /// Environment variables that override the operator's.
    pub env: BTreeMap<String, String>,
    /// Arguments after the hook's name.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: Bytes,
    /// Time limit for all hooks together, if less than
    /// [`HookDirConfig::total_timeout`].
    pub timeout: Option<Duration>,
}

impl HookCall {
    /// Empty input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Bytes>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// A hook of a run, as it was when the run began.
#[derive(Debug)]
struct LoadedHook {
    file: HookFile,
    program: Result<Loaded<Sandbox>, End>,
    loading: Duration,
}

#[derive(Debug)]
pub(super) struct Run {
    dir: Arc<Dir>,
    gate: Gate,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Bytes,
    began: Instant,
    /// When the time of all hooks together is over. `limit` is the limit that sets it, with its value.
    deadline: Instant,
    limit: (LimitName, Duration),
}

impl Run {
    pub(super) fn new(dir: Arc<Dir>, call: HookCall) -> Result<Self, HookError> {
        let began = Instant::now();
        let gate = dir.hooks.0.gate.lock().clone().ok_or(HookError::Ended)?;
        let HookCall { params, env, args, stdin, timeout } = call;
        check(&params, &env, &args)?;
        let total = dir.config.total_timeout;
        let limit = match timeout {
            Some(timeout) if timeout < total => (LimitName::CALL, timeout),
            _ => (LimitName::TOTAL_TIMEOUT, total),
        };
        let granted = dir.config.grants.env.clone();
        let env = granted.into_iter().chain(env).chain(params).collect::<BTreeMap<_, _>>();
        let env = env.into_iter().collect();
        Ok(Self { dir, gate, args, env, stdin, began, deadline: began + limit.1, limit })
    }

    pub(super) async fn run(self, runs_on: RunsOn) -> Result<HookReport, HookError> {
        let dir = self.dir.clone();
        let report = self.all(runs_on).await;
        if let Err(error) = &report {
            told::not_run(&dir.lines, dir.name.as_ref(), error);
        }
        report
    }

    /// Waits for a place, lists and loads the hooks, and runs them one after another.
    async fn all(self, runs_on: RunsOn) -> Result<HookReport, HookError> {
        let dir = self.dir.clone();
        let places = async { (dir.at_once.acquire().await, dir.hooks.0.places.acquire().await) };
        let _places = self.before(&runs_on, places).await?;
        let listed = {
            let dir = dir.clone();
            runs_on.blocking(move || files::list(&dir.config.dir, &dir.config.suffixes, MAX_HOOKS))
        };
        let listed = self.before(&runs_on, listed).await?.map_err(|_| HookError::Ended)?;
        let directory = || dir.config.dir.clone();
        let files = listed.map_err(|source| HookError::Directory { dir: directory(), source })?;
        if files.len() > MAX_HOOKS {
            return Err(HookError::TooMany { dir: directory(), allowed: MAX_HOOKS });
        }
        dir.known.lock().retain(&files);
        let hooks = self.load_all(&runs_on, files).await;
        let mut runs: Vec<HookRun> = Vec::with_capacity(hooks.len());
        let mut written = (0, 0);
        // The granted directories are opened once for all hooks, before the first one runs.
        let mut dirs = None;
        for hook in hooks {
            let is_loaded = hook.program.is_ok();
            let run = self.hook(&runs_on, hook, &mut dirs, written).await;
            written.0 += run.stdout.len();
            written.1 += run.stderr.len();
            told::tell(&dir.hooks.0.counts, &dir.lines, dir.name.as_ref(), &run, is_loaded);
            let goes_on = run.outcome.goes_on();
            runs.push(run);
            if !goes_on {
                break;
            }
        }
        Ok(HookReport { runs, duration: self.began.elapsed() })
    }

    /// Waits for preparations before the first hook, within the time limit.
    async fn before<T>(&self, runs_on: &RunsOn, work: impl Future<Output = T>) -> Result<T, HookError> {
        if self.deadline <= Instant::now() {
            return Err(HookError::TimedOut);
        }
        runs_on.until(self.deadline, &self.gate.closing, work).await.map_err(|cut| match cut {
            Cut::TimedOut => HookError::TimedOut,
            Cut::Interrupted => HookError::Ended,
        })
    }

    /// Loads all hooks before the first one runs, up to one that cannot be loaded, since none runs after it. If the
    /// time is over or Main ends, returns only the hook that was being loaded. If the time is over, it and the rest are
    /// loaded for a later run.
    async fn load_all(&self, runs_on: &RunsOn, files: Vec<HookFile>) -> Vec<LoadedHook> {
        let mut hooks = Vec::with_capacity(files.len());
        let mut files = files.into_iter();
        while let Some(file) = files.next() {
            let began = Instant::now();
            let program = self.load_one(runs_on, &file).await;
            if program.is_err() && self.is_gone(runs_on, &file).await {
                // The file was removed or renamed since the directory was listed.
                continue;
            }
            if let Err(End::Cut(cut)) = &program {
                hooks.clear();
                if *cut == Cut::TimedOut {
                    let left = iter::once(file.clone()).chain(files.by_ref()).collect();
                    self.dir.load_later(left, self.gate.clone());
                }
            }
            let is_last = program.is_err();
            hooks.push(LoadedHook { file, program, loading: began.elapsed() });
            if is_last {
                break;
            }
        }
        hooks
    }

    async fn load_one(&self, runs_on: &RunsOn, file: &HookFile) -> Result<Loaded<Sandbox>, End> {
        if self.deadline <= Instant::now() {
            return Err(End::Cut(Cut::TimedOut));
        }
        match self.dir.known(file) {
            Some(loaded) => Ok(loaded),
            None => {
                let load = runs_on.until(self.deadline, &self.gate.closing, self.dir.load(runs_on, file));
                load.await.map_err(End::Cut)?.map_err(End::from)
            }
        }
    }

    /// Runs a hook. `written` is how many bytes earlier hooks have written to standard output and standard error.
    async fn hook(
        &self,
        runs_on: &RunsOn,
        hook: LoadedHook,
        dirs: &mut Option<Dirs>,
        written: (usize, usize),
    ) -> HookRun {
        let began = Instant::now();
        let LoadedHook { file, program, loading } = hook;
        let ended = match program {
            Ok(program) => self.ended(runs_on, &file, program, dirs, written).await,
            Err(end) => Err(end),
        };
        let ended = ended.unwrap_or_else(|end| Ended {
            end,
            stdout: Bytes::new(),
            stderr: Bytes::new(),
            fuel: 0,
            memory: 0,
        });
        let Ended { end, stdout, stderr, fuel, memory } = ended;
        HookRun {
            hook: file.name.to_string_lossy().into_owned(),
            outcome: self.outcome(end),
            stdout,
            stderr,
            duration: loading + began.elapsed(),
            loading,
            fuel,
            memory,
            is_cut: false,
        }
    }

    /// Runs a hook to its end. Fails if it cannot start.
    async fn ended(
        &self,
        runs_on: &RunsOn,
        file: &HookFile,
        loaded: Loaded<Sandbox>,
        dirs: &mut Option<Dirs>,
        written: (usize, usize),
    ) -> Result<Ended, End> {
        if self.deadline <= Instant::now() {
            return Err(End::Cut(Cut::TimedOut));
        }
        let closing = &self.gate.closing;
        let HookDirConfig { limits, timeout, .. } = &self.dir.config;
        let by = self.deadline.min(Instant::now() + *timeout);
        let dirs = match dirs {
            Some(dirs) => dirs.clone(),
            None => {
                let opened = runs_on.until(by, closing, self.open(runs_on)).await.map_err(End::Cut)?;
                let opened = opened.map_err(|reason| End::System { reason, trace: Vec::new() })?;
                dirs.insert(opened).clone()
            }
        };
        let (net, outlet) = (self.dir.net.clone(), self.dir.outlet.clone());
        let (dir, name) = (self.dir.clone(), file.name.to_string_lossy().into_owned());
        let say = move |text: &str| told::refused(&dir.refusals, dir.name.as_ref(), &name, text);
        let surroundings = self.surroundings(file, written);
        let command = WasiCommand::new(limits, dirs, net, outlet, surroundings, Arc::new(say));
        let (key_value, grants) = (&self.dir.hooks.0.resources.key_value, &self.dir.config.grants.stores);
        let command = command.with_stores(key_value, &self.dir.owner, grants, limits);
        Ok(command.run(&loaded.program, limits, runs_on, by, closing).await)
    }

    /// Opens the granted directories, and counts what is in those with bounds.
    async fn open(&self, runs_on: &RunsOn) -> Result<Dirs, String> {
        if self.dir.config.grants.dirs.is_empty() {
            return Ok(Dirs::default());
        }
        let (dir, may_block) = (self.dir.clone(), runs_on.may_block());
        let opened =
            runs_on.blocking(move || WasiCommand::open(&dir.config.grants, may_block, &dir.hooks.0.quotas));
        let dirs = opened.await.unwrap_or_else(|panic| Err(panic.to_string()))?;
        WasiCommand::count(&dirs).await?;
        Ok(dirs)
    }

    fn surroundings(&self, file: &HookFile, written: (usize, usize)) -> Surroundings {
        let name = file.name.to_string_lossy().into_owned();
        Surroundings {
            args: iter::once(name).chain(self.args.iter().cloned()).collect(),
            env: self.env.clone(),
            stdin: self.stdin.clone(),
            output: self.dir.config.output,
            written,
        }
    }

    async fn is_gone(&self, runs_on: &RunsOn, file: &HookFile) -> bool {
        let path = self.dir.config.dir.join(&file.name);
        let stamp =
            runs_on.until(self.deadline, &self.gate.closing, runs_on.blocking(move || FileStamp::of(&path)));
        matches!(stamp.await, Ok(Ok(Err(error))) if error.kind() == io::ErrorKind::NotFound)
    }

    fn outcome(&self, end: End) -> HookOutcome {
        match end {
            End::Code(code) => self.dir.config.exit_codes.meaning(code),
            End::Limit(limit) => HookOutcome::LimitExceeded(limit),
            End::System { reason, trace } => HookOutcome::SystemError { reason, trace },
            End::Cut(Cut::Interrupted) => HookOutcome::Interrupted,
            End::Cut(Cut::TimedOut) => {
                let (limit, allowed) = if Instant::now() >= self.deadline {
                    self.limit.clone()
                } else {
                    (LimitName::TIMEOUT, self.dir.config.timeout)
                };
                HookOutcome::TimedOut { limit, allowed }
            }
        }
    }
}

/// Refuses input that an environment or arguments cannot hold.
fn check(
    params: &BTreeMap<String, String>,
    env: &BTreeMap<String, String>,
    args: &[String],
) -> Result<(), HookError> {
    for (name, value) in params.iter().chain(env) {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(HookError::Invalid(format!(
                "{name:?} cannot be a variable: its name is empty or has `=` or NUL in it, or its value has NUL"
            )));
        }
    }
    match args.iter().find(|argument| argument.contains('\0')) {
        Some(argument) => {
            Err(HookError::Invalid(format!("{argument:?} cannot be an argument: it has NUL in it")))
        }
        None => Ok(()),
    }
}
