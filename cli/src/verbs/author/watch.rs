//! Waits for changes of a project's files.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, VecDeque},
    convert::Infallible,
    fs::{self, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    mem::{self, MaybeUninit},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustix::{
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};
use tokio::net::unix::pipe::Receiver;

use super::dev::say;
use crate::{exit, output::printable};

/// How long nothing must change before changes count as complete: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// How long the wait for such a quiet moment may take, if something goes on writing.
const QUIET_WITHIN: Duration = Duration::from_secs(2);

/// Directories and files that tools write themselves.
const WRITTEN_BY_TOOLS: [&str; 8] =
    ["target", "node_modules", "dist", "__pycache__", "venv", "Cargo.lock", "package-lock.json", "go.sum"];

/// The bytes of the buffer for events.
const BUFFER: usize = 4096;

/// The most bytes of a file that is compared by its content. A larger file is compared by its size and the time of its
/// last change.
const COMPARED: u64 = 1 << 20;

/// The most files and directories that are looked at: a link can lead anywhere.
const MOST_SOURCES: usize = 100_000;

/// After a file has changed during so many builds, with no change of any source between them, the build counts as its
/// writer. An author who saves a file only during builds is taken for the build.
const OWN_AFTER: u32 = 3;

/// After so many builds in a row that bring or remove files, the build counts as their writer. These are more builds
/// than `OWN_AFTER`: the first ones bring caches, and an author may add a file.
const OWN_NAMES_AFTER: u32 = 10;

pub(super) struct Watch {
    /// The descriptor of inotify. It is no pipe, but is waited for like one.
    inotify: Receiver,
    /// The directories whose files count. The first is the project's own.
    roots: Vec<PathBuf>,
    /// Paths that tools and extensions write, where they are known.
    no_sources: BTreeSet<PathBuf>,
    sources: Sources,
    /// The most sources: `MOST_SOURCES`, except in tests.
    most_sources: usize,
    /// Directories outside of the project's that cannot be watched, with all below them. They are not tried again.
    left_out: BTreeSet<PathBuf>,
    /// Whether something happened since the last look.
    is_due: bool,
    /// During how many builds each source changed. A change between builds resets the counts of the changed sources,
    /// and all counts below `OWN_AFTER`.
    in_builds: BTreeMap<PathBuf, u32>,
    /// The number of builds in a row during which files came or went, and nothing else changed.
    in_a_row: u32,
}

/// Files and directories, each with a number that tells one content from another.
type Sources = BTreeMap<PathBuf, u64>;

/// What changed during a build.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DuringBuild {
    /// Sources that the author may have saved: they need another build.
    pub(super) saved: Vec<PathBuf>,
    /// Sources that turn out to be written by the build.
    pub(super) written: Vec<PathBuf>,
}

impl Watch {
    /// Watches a directory and all below it that is a source, from now on.
    pub(super) fn new(dir: &Path, no_sources: BTreeSet<PathBuf>) -> anyhow::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(Receiver::from_owned_fd_unchecked)
            .context("cannot watch files")?;
        let mut watch = Self {
            inotify,
            roots: vec![dir.to_owned()],
            no_sources,
            sources: Sources::new(),
            most_sources: MOST_SOURCES,
            left_out: BTreeSet::new(),
            is_due: false,
            in_builds: BTreeMap::new(),
            in_a_row: 0,
        };
        watch.sources = watch.look()?;
        Ok(watch)
    }

    /// Watches these directories beside the project's own, and leaves out these paths, in place of those of earlier
    /// calls. Sources that come or go by that do not count as changed.
    pub(super) fn follow(
        &mut self,
        further: BTreeSet<PathBuf>,
        no_sources: BTreeSet<PathBuf>,
    ) -> anyhow::Result<()> {
        let own = self.roots.first().cloned();
        let roots: Vec<_> = own.into_iter().chain(further).collect();
        if (&roots, &no_sources) == (&self.roots, &self.no_sources) {
            return Ok(());
        }
        let roots_before = mem::replace(&mut self.roots, roots);
        let no_sources_before = mem::replace(&mut self.no_sources, no_sources);
        let now = self.look()?;
        // A source that was watched before and still is keeps its old content here, so a change of it still counts.
        let (roots, no_sources) = (&self.roots, &self.no_sources);
        self.sources.retain(|path, _| now.contains_key(path) || !is_left_out(path, roots, no_sources));
        for (path, content) in now {
            if is_left_out(&path, &roots_before, &no_sources_before) {
                self.sources.entry(path).or_insert(content);
            }
        }
        Ok(())
    }

    /// Waits until the content of sources has changed and then stays as it is for a moment. If the wait is dropped, the
    /// next call does not miss what it had noticed.
    pub(super) async fn changed(&mut self) -> anyhow::Result<()> {
        loop {
            while !self.is_due {
                self.is_due = self.next_are_changes().await?;
            }
            self.is_quiet().await?;
            let (changed, _) = self.renew()?;
            for path in &changed {
                self.in_builds.remove(path);
            }
            if !changed.is_empty() {
                self.in_builds.retain(|_, builds| *builds >= OWN_AFTER);
                self.in_a_row = 0;
                return Ok(());
            }
        }
    }

    /// Returns what has changed during a build that has just ended.
    pub(super) async fn built(&mut self) -> anyhow::Result<DuringBuild> {
        self.is_quiet().await?;
        let mut during = DuringBuild::default();
        let (changed, was) = self.renew()?;
        for path in changed {
            let builds = self.in_builds.entry(path.clone()).or_default();
            *builds = builds.saturating_add(1);
            match (*builds).cmp(&OWN_AFTER) {
                Ordering::Less => during.saved.push(path),
                Ordering::Equal => during.written.push(path),
                Ordering::Greater => {}
            }
        }
        // A source that was there before the build and still is was edited, probably by the author.
        let was_edited = |path: &PathBuf| was.contains_key(path) && self.sources.contains_key(path);
        let are_saved = during.saved.is_empty() || during.saved.iter().any(was_edited);
        self.in_a_row = if are_saved { 0 } else { self.in_a_row.saturating_add(1) };
        if self.in_a_row >= OWN_NAMES_AFTER {
            // The build writes a new file each time.
            during.written.append(&mut during.saved);
            self.in_a_row = 0;
        }
        Ok(during)
    }

    /// Returns what has changed since the last look, and the sources of then. The next look is compared with this one.
    fn renew(&mut self) -> anyhow::Result<(Vec<PathBuf>, Sources)> {
        self.is_due = false;
        let now = self.look()?;
        let was = mem::replace(&mut self.sources, now);
        let differs = |one: &Sources, path: &PathBuf, content: &u64| one.get(path) != Some(content);
        let now = self.sources.iter().filter(|(path, content)| differs(&was, path, content));
        let gone = was.keys().filter(|path| !self.sources.contains_key(*path));
        let changed = now.map(|(path, _)| path).chain(gone).cloned().collect();
        Ok((changed, was))
    }

    /// Waits until no event comes for `QUIET`, but at most `QUIET_WITHIN`. Notes whether an event was of a source.
    async fn is_quiet(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + QUIET_WITHIN;
        while Instant::now() < end
            && let Ok(more) = tokio::time::timeout(QUIET, self.next_are_changes()).await
        {
            self.is_due |= more?;
        }
        Ok(())
    }

    /// Waits for events, and returns whether one of them is of a source.
    async fn next_are_changes(&self) -> anyhow::Result<bool> {
        self.inotify.readable().await?;
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut are_changes = false;
        let read: io::Result<Infallible> = self.inotify.try_io(|| {
            loop {
                let event = events.next()?;
                // An event without a name says that events were lost, or that a watched directory has gone.
                are_changes |= event.file_name().is_none_or(|name| is_source(&name.to_string_lossy()));
            }
        });
        match read {
            Err(end) if end.kind() == io::ErrorKind::WouldBlock => Ok(are_changes),
            Err(error) => Err(error).context("cannot watch files"),
            Ok(never) => match never {},
        }
    }

    /// Returns all sources. New directories are watched from then on, and the user is told which ones cannot be.
    fn look(&mut self) -> anyhow::Result<Sources> {
        let [own, further @ ..] = self.roots.as_slice() else { return Ok(Sources::new()) };
        let mut look = Look {
            watch: &*self,
            own,
            found: Sources::new(),
            of_tree: Sources::new(),
            trees: further.iter().cloned().collect(),
            seen: BTreeSet::new(),
            left_out: BTreeMap::new(),
        };
        look.at(own)?;
        look.found = mem::take(&mut look.of_tree);
        while let Some(tree) = look.trees.pop_front() {
            look.at_tree(tree);
        }
        let Look { found, left_out, .. } = look;
        for (dir, error) in left_out {
            if self.left_out.insert(dir.clone()) {
                let dir = printable(&dir.display().to_string());
                say(&format!("`{dir}` is not watched: {}", exit::chain(&error)));
            }
        }
        Ok(found)
    }

    /// Watches a directory. Returns false if it is not there, which is an error for the project's own directory.
    fn add(&self, dir: &Path) -> anyhow::Result<bool> {
        let of = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.inotify, dir, of) {
            Ok(_) => Ok(true),
            // The directory has gone again.
            Err(Errno::NOENT | Errno::NOTDIR) if self.roots.first().is_none_or(|own| own != dir) => Ok(false),
            Err(error) => {
                Err(io::Error::from(error)).with_context(|| format!("cannot watch `{}`", dir.display()))
            }
        }
    }
}

/// One look at all sources.
struct Look<'a> {
    watch: &'a Watch,
    /// The project's own directory.
    own: &'a Path,
    found: Sources,
    /// The sources in the tree that is looked at now.
    of_tree: Sources,
    /// Directories outside of the project's own that are not yet looked at.
    trees: VecDeque<PathBuf>,
    /// Directories that were looked at: links can lead in a circle.
    seen: BTreeSet<PathBuf>,
    /// Directories that cannot be watched, and why.
    left_out: BTreeMap<PathBuf, anyhow::Error>,
}

impl Look<'_> {
    /// Looks at a tree outside of the project. If a part of it cannot be watched, the whole tree is left out.
    fn at_tree(&mut self, tree: PathBuf) {
        if self.watch.left_out.contains(&tree) || self.left_out.contains_key(&tree) {
            return;
        }
        let waiting = self.trees.len();
        match self.at(&tree) {
            Ok(()) => self.found.extend(mem::take(&mut self.of_tree)),
            Err(error) => {
                // Another link may lead to a part of it.
                for path in mem::take(&mut self.of_tree).into_keys() {
                    self.seen.remove(&path);
                }
                self.trees.truncate(waiting);
                self.left_out.insert(tree, error);
            }
        }
    }

    /// Looks at a directory and all below it. `dir` itself must be no link.
    fn at(&mut self, dir: &Path) -> anyhow::Result<()> {
        if self.watch.no_sources.contains(dir) || !self.seen.insert(dir.to_owned()) || !self.watch.add(dir)? {
            return Ok(());
        }
        self.find(dir.to_owned(), 0)?;
        let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_no_source = !is_source(&entry.file_name().to_string_lossy());
            if is_no_source || self.watch.no_sources.contains(&path) {
                continue;
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let (Ok(real), Ok(metadata)) =
                (if is_link { fs::canonicalize(&path) } else { Ok(path.clone()) }, fs::metadata(&path))
            else {
                continue;
            };
            if metadata.is_dir() && is_link && !real.starts_with(self.own) {
                self.trees.push_back(real);
            } else if metadata.is_dir() {
                self.at(&real)?;
            } else if metadata.is_file() {
                // An editor replaces the file that the link leads to, so the directory of that file is watched. Other
                // files in that directory are not looked at.
                if let (true, Some(parent)) = (is_link, real.parent())
                    && let Err(error) = self.watch.add(parent)
                {
                    if parent.starts_with(self.own) {
                        return Err(error);
                    }
                    self.left_out.insert(parent.to_owned(), error);
                    continue;
                }
                let content = content(&path, &metadata);
                self.find(path, content)?;
            }
        }
        Ok(())
    }

    /// Adds a file or directory to the sources of the present tree. Fails if there are too many.
    fn find(&mut self, path: PathBuf, content: u64) -> anyhow::Result<()> {
        let most = self.watch.most_sources;
        ensure!(
            self.found.len().saturating_add(self.of_tree.len()) < most,
            "cannot watch more than {most} files, as there are up to `{}`: a directory whose name begins with a dot is left \
             out",
            path.display()
        );
        self.of_tree.insert(path, content);
        Ok(())
    }
}

fn is_left_out(path: &Path, roots: &[PathBuf], no_sources: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|part| no_sources.contains(part)) || !roots.iter().any(|root| path.starts_with(root))
}

/// Makes a number that tells one content of a file from another.
fn content(path: &Path, metadata: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    let content = (metadata.len() <= COMPARED).then(|| fs::read(path).ok()).flatten();
    match content {
        Some(content) => content.hash(&mut hasher),
        None => (metadata.len(), metadata.modified().ok()).hash(&mut hasher),
    }
    hasher.finish()
}

/// Whether this may be a file that a person changes, or a directory of such files.
fn is_source(name: &str) -> bool {
    !name.starts_with('.') && !name.ends_with('~') && !WRITTEN_BY_TOOLS.contains(&name)
}

#[cfg(test)]
mod tests;
