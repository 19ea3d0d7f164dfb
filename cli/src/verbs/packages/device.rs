//! An operator's file while it is changed: one command at a time, and whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use semver::Version;
use tempfile::NamedTempFile;
use weir_host::{
    Config, ExtensionConfig, MainConfig,
    component::{Signature, proven},
    config::{ArtifactHash, ComponentLock, ComponentLockFault, ConfigErrors, FileLock, LockedExtension},
};
use weir_package::{Installed, OperatorsFile};

use super::{Fetched, sha256};
use crate::{features, output::printable};

/// How long another command may take to change the same file. None waits for the network meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often to look whether the other command is done.
const PAUSE: Duration = Duration::from_millis(20);

/// An operator's file that no other command changes meanwhile.
pub(super) struct Device {
    pub(super) path: PathBuf,
    pub(super) config: Config,
    _lock: FileLock,
}

/// A file of the configuration and what becomes of it.
pub(super) struct Edit {
    pub(super) path: PathBuf,
    pub(super) file: OperatorsFile,
    /// The text before.
    before: String,
}

impl Device {
    /// Reads a configuration, once no other command changes it.
    pub(super) async fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot change `{}`", path.display());
        // An editor may put another file in the place of this one, so its directory is locked. Main locks the file.
        let full = path.canonicalize().with_context(failed)?;
        let dir = full.parent().unwrap_or(Path::new("/"));
        let begun = Instant::now();
        let lock = loop {
            match FileLock::take(File::open(dir).with_context(failed)?) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                taken => break taken.with_context(failed)?,
            }
        };
        Ok(Self { path: path.to_owned(), config: features::load(path)?, _lock: lock })
    }

    pub(super) fn extension(&self, id: &str) -> Option<&ExtensionConfig> {
        self.config.extensions.iter().find(|extension| extension.id.as_str() == id)
    }

    /// Whether this component of an extension is as it was placed: with a name of ours, and the content that the table
    /// has.
    pub(super) fn has_placed(&self, extension: &ExtensionConfig, path: &Path) -> bool {
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".wasm"));
        let version = name.and_then(|name| name.strip_prefix(extension.id.as_str())?.strip_prefix('-'));
        let is_ours = version.is_some_and(|version| version.parse::<Version>().is_ok())
            && path.parent() == self.plugin_dir().ok();
        is_ours && extension.sha256.is_some() && hash(path).ok().map(|(sha256, _)| sha256) == extension.sha256
    }

    /// The file with the table of an extension, or the main file.
    pub(super) fn edit(&self, id: &str) -> anyhow::Result<Edit> {
        let index = self.config.extensions.iter().position(|extension| extension.id.as_str() == id);
        let error = index.map(|index| self.config.component_error(index, false, ""));
        let path = error.and_then(|error| error.file().map(PathBuf::from));
        let path = path.unwrap_or_else(|| self.path.clone());
        let failed = || format!("cannot change `{}`", path.display());
        let before = fs::read_to_string(&path).with_context(failed)?;
        let file = before.parse().with_context(failed)?;
        Ok(Edit { path, file, before })
    }

    /// The directory of components, which every configuration of a file has.
    fn plugin_dir(&self) -> anyhow::Result<&Path> {
        self.config.main.plugin_dir.as_deref().context("the configuration has no `main.plugin-dir`")
    }

    /// What the table of an extension says of the component of a package.
    pub(super) fn installed(&self, id: &str, fetched: &Fetched) -> anyhow::Result<Installed> {
        Ok(Installed {
            path: format!("{id}-{}.wasm", fetched.version()?),
            sha256: Some(sha256(&fetched.package).to_string()),
            source: Some(fetched.source.lasting()?.to_string()),
            manifest: Some(fetched.package.digest),
        })
    }

    /// Where such a component is.
    pub(super) fn path_of(&self, component: &Installed) -> anyhow::Result<PathBuf> {
        Ok(self.plugin_dir()?.join(&component.path))
    }

    /// Says in the table of an extension which id its component is signed as, if that is not the id of the extension.
    pub(super) fn name_signed(&self, edit: &mut Edit, id: &str, fetched: &Fetched) -> anyhow::Result<()> {
        let Some(signature) = &fetched.signature else { return Ok(()) };
        let signed = Some(signature.id.as_str()).filter(|signed| *signed != id);
        edit.file.sign_as(id, signed).with_context(|| edit.failed())
    }

    /// The configuration as it would be with this edit.
    pub(super) fn checked(&self, edit: &Edit) -> Result<Config, ConfigErrors> {
        features::loader().load_edited(&self.path, &edit.path, &edit.file.to_string())
    }

    /// The lock beside the file, if there is one.
    pub(super) fn lock(&self) -> anyhow::Result<Option<ComponentLock>> {
        match ComponentLock::read(&ComponentLock::path_of(&self.path)) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if matches!(error.fault, ComponentLockFault::Missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the lock, if there is one, after this change.
    pub(super) fn relock(
        &self,
        lock: Option<ComponentLock>,
        change: impl FnOnce(&mut ComponentLock),
    ) -> anyhow::Result<()> {
        let Some(mut lock) = lock else { return Ok(()) };
        change(&mut lock);
        let path = ComponentLock::path_of(&self.path);
        lock.write(&path).with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Puts the component of a package in its place, and the edited file. Before that the lock has the component, so that
    /// a Main with the lock can always start. What can fail comes first: nothing is written before the configuration was
    /// read as it will be. Returns the extension.
    pub(super) fn install(
        &self,
        id: &str,
        fetched: &Fetched,
        component: &Installed,
        edit: &Edit,
    ) -> anyhow::Result<ExtensionConfig> {
        let config = self.checked(edit)?;
        let (main, extensions) = config.into_parts();
        let Some(extension) = extensions.into_iter().find(|it| it.id.as_str() == id) else {
            bail!("`{}` would have no extension `{}`", self.path.display(), printable(id));
        };
        let (lock, sha256, version) = (self.lock()?, sha256(&fetched.package), fetched.version()?);
        let files = staged(&self.path_of(component)?, fetched)?;
        let edited = edit.prepare()?;
        edited.is_wanted_still()?;
        let mut placed = Vec::new();
        let place = || {
            for (file, path) in files {
                let failed = || format!("cannot write `{}`", path.display());
                let is_new = path.symlink_metadata().is_err();
                file.persist(&path).map_err(|error| error.error).with_context(failed)?;
                placed.extend(is_new.then(|| path.clone()));
                sync_dir(&path).with_context(failed)?;
            }
            self.relock(lock, |lock| {
                let mut locked = LockedExtension::new(sha256);
                locked.version = Some(version.to_string());
                locked.source.clone_from(&component.source);
                if let Some(before) = lock.extensions.get(&extension.id) {
                    let comes_back = comes_back(&main, &extension);
                    let proven = before.falls_back_to.iter().filter(|earlier| comes_back(**earlier));
                    let earlier = std::iter::once(&before.sha256).chain(proven);
                    locked.falls_back_to = earlier.filter(|earlier| **earlier != sha256).copied().collect();
                }
                lock.extensions.insert(extension.id.clone(), locked);
            })?;
            edited.persist()
        };
        let done = place();
        if done.is_err() {
            for path in placed {
                let _the_first_error_counts = fs::remove_file(path);
            }
        }
        done.map(|()| extension)
    }
}

/// Tells which components that an extension had before may come back: proven versions, as far as this user can read
/// which those are, and all if not.
fn comes_back(main: &MainConfig, extension: &ExtensionConfig) -> impl Fn(ArtifactHash) -> bool {
    let known = match (&extension.update, &main.state_dir) {
        (Some(_), Some(dir)) => proven(dir, &extension.id).ok(),
        _ => Some(Vec::new()),
    };
    move |hash| known.as_ref().is_none_or(|known| known.contains(&hash))
}

/// Copies the component of a package and its signature into the plugin directory, without their names yet. Returns each
/// file with its name. What has the name already, and the same content, stays.
fn staged(path: &Path, fetched: &Fetched) -> anyhow::Result<Vec<(NamedTempFile, PathBuf)>> {
    let failed = || format!("cannot write `{}`", path.display());
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).with_context(failed)?;
    let mut files = Vec::new();
    match hash(path) {
        Ok((there, _)) if there == sha256(&fetched.package) => {}
        _ if path.symlink_metadata().is_ok() => bail!(
            "`{}` is there with another content: a new component has a new version, so ask its author for one",
            path.display()
        ),
        _ => {
            let mut content = File::open(&fetched.package.component).with_context(failed)?;
            let mut to = temporary(path, 0o644).with_context(failed)?;
            io::copy(&mut content, &mut to).with_context(failed)?;
            files.push((to, path.to_owned()));
        }
    }
    if let Some(signature) = &fetched.signature {
        let beside = Signature::path_of(path);
        let mut to = temporary(&beside, 0o644).with_context(failed)?;
        to.write_all(signature.text().as_bytes()).with_context(failed)?;
        files.push((to, beside));
    }
    for (file, _) in &files {
        file.as_file().sync_all().with_context(failed)?;
    }
    Ok(files)
}

impl Edit {
    /// Writes the edited file beside the one that it replaces. Its owner and permissions are those of that file, whose
    /// secrets nobody else can read meanwhile.
    pub(super) fn prepare(&self) -> anyhow::Result<Edited<'_>> {
        let written = || {
            let path = self.path.canonicalize()?;
            let metadata = fs::metadata(&path)?;
            let mut file = temporary(&path, 0o600)?;
            file.write_all(self.file.to_string().as_bytes())?;
            let own = file.as_file().metadata()?;
            if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
            file.as_file().set_permissions(metadata.permissions())?;
            file.as_file().sync_all()?;
            Ok::<_, io::Error>((file, path))
        };
        let (file, path) = written().with_context(|| self.failed())?;
        Ok(Edited { edit: self, file, path })
    }

    fn failed(&self) -> String {
        format!("cannot write `{}`", self.path.display())
    }
}

/// An edited file that waits to replace the one before.
pub(super) struct Edited<'a> {
    edit: &'a Edit,
    file: NamedTempFile,
    /// Without symlinks, so that a symlink stays one.
    path: PathBuf,
}

impl Edited<'_> {
    /// Replaces the file, or leaves the old one. What an editor has saved meanwhile stays.
    pub(super) fn persist(self) -> anyhow::Result<()> {
        self.is_wanted_still()?;
        let Self { edit, file, path } = self;
        let persisted = file.persist(&path).map_err(|error| error.error).and_then(|_| sync_dir(&path));
        persisted.with_context(|| edit.failed())
    }

    /// Fails if the file is not what was edited any more.
    fn is_wanted_still(&self) -> anyhow::Result<()> {
        let Self { edit, path, .. } = self;
        if fs::read_to_string(path).with_context(|| edit.failed())? != edit.before {
            bail!("`{}` was changed by another program meanwhile: try again", edit.path.display());
        }
        Ok(())
    }
}

/// The SHA-256 and the size of a file.
pub(super) fn hash(path: &Path) -> io::Result<(ArtifactHash, u64)> {
    let (size, digest) = weir_package::copy(&mut weir_package::open(path)?, &mut io::sink(), u64::MAX)?;
    Ok((ArtifactHash::from_bytes(digest.bytes()), size))
}

/// Makes a file without a name that is listed, beside the one that it becomes.
fn temporary(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let permissions = fs::Permissions::from_mode(mode);
    tempfile::Builder::new().prefix(".weir-").permissions(permissions).tempfile_in(dir)
}

/// Makes the name of a file last over a power cut.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
