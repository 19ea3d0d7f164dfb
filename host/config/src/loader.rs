//! Reads configurations with other crates' sections: the main file and its included files, within bounds.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    mem,
    path::{self, Path, PathBuf},
};

use glob::{MatchOptions, Pattern};
use rustix::fs::{Mode, OFlags};

use super::{
    Config, ConfigErrors, ConfigFile, check,
    classes::Classes,
    config::ReadFrom,
    environment::Environment,
    error::{ConfigError, ERRORS_MAX, Location, Source, quote},
    json_schema,
    main_config::default_cache_dir,
    read::FileReader,
    schema::{ConfigSection, Registered, Settling},
    section::{KnownKey, Located},
    sections::{Draft, by_name},
    shape::bytes,
};

/// Largest file, in bytes. A thousand extensions take a fifth of it.
const FILE_SIZE_MAX: u64 = 1024 * 1024;

/// Included files in total.
const INCLUDED_FILES_MAX: usize = 64;

/// The most patterns in `include`, and the most names with wildcards in each. More might search whole disks.
const PATTERNS_MAX: usize = 64;
const WILD_NAMES_MAX: usize = 2;

/// In patterns, `*` matches no hidden files, because editors keep backups under such names.
const GLOB_OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// What is said of anything that needs a feature which this build lacks. It follows the name of that thing.
#[must_use]
pub fn not_in_this_build(feature: &str) -> String {
    format!("is not in this build of Weir: build it with the feature `{feature}`")
}

/// Reads configurations: this crate's tables, and registered sections.
#[derive(Clone, Default)]
pub struct Loader {
    pub(super) sections: Vec<Registered>,
    /// Tables that this build lacks, and the feature that each needs.
    pub(super) lacking: Vec<(&'static str, &'static str)>,
}

impl Loader {
    /// Knows `include`, `main`, `limits`, `queue`, `topic`, `peer` and `extension`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a section. Replaces a section with the same table.
    #[must_use]
    pub fn section<S: ConfigSection>(mut self) -> Self {
        self.sections.retain(|known| known.table != S::TABLE);
        self.sections.push(Registered::of::<S>());
        self
    }

    /// Refuses a table that needs a feature which this build lacks. Without it the operator would take the table for a
    /// misspelt one.
    #[must_use]
    pub fn without(mut self, table: &'static str, feature: &'static str) -> Self {
        self.lacking.push((table, feature));
        self
    }

    /// Reads a file and its included files.
    ///
    /// Environment variables that start with `WEIR_LIMITS_` override the classes of the files:
    /// `WEIR_LIMITS_MEDIUM_STACK="2 MiB"` means `stack = "2 MiB"` in the class `medium`, built in or not. Variables
    /// for the machine's caches set the default of [`MainConfig::cache_dir`](super::MainConfig::cache_dir).
    ///
    /// # Errors
    ///
    /// All faults in the files and in the variables: unreadable files, syntax, keys, values, and those of
    /// [`Config::check`].
    pub fn load(&self, path: &Path) -> Result<Config, ConfigErrors> {
        self.load_with(path, &Environment::of_process(), None)
    }

    /// Reads a file and its included files as they would be if one of them had another text.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load).
    pub fn load_edited(&self, path: &Path, edited: &Path, text: &str) -> Result<Config, ConfigErrors> {
        self.load_with(path, &Environment::of_process(), Some((edited, text)))
    }

    pub(super) fn load_with(
        &self,
        path: &Path,
        environment: &Environment,
        edited: Option<(&Path, &str)>,
    ) -> Result<Config, ConfigErrors> {
        let (mut source, absolute) = open(path)?;
        let name = path.display().to_string();
        if let Some(text) = text_instead(path, edited) {
            source = Source::new(&name, text, absolute.parent().unwrap_or(&absolute), 0);
        }
        let config = self.build(&name, source, Some(&absolute), environment, edited)?;
        Ok(Config { file: Some(ConfigFile { path: absolute, loader: self.clone() }), ..config })
    }

    /// Reads a text like [`load`](Self::load). Messages call it `name`; its paths are relative to `base_dir`. The same
    /// variables apply.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load).
    pub fn parse(&self, text: &str, name: &str, base_dir: &Path) -> Result<Config, ConfigErrors> {
        self.parse_with(text.to_owned(), name, base_dir, &Environment::of_process())
    }

    pub(super) fn parse_with(
        &self,
        text: String,
        name: &str,
        base_dir: &Path,
        environment: &Environment,
    ) -> Result<Config, ConfigErrors> {
        if u64::try_from(text.len()).is_ok_and(|size| size > FILE_SIZE_MAX) {
            return Err(unreadable(name, &ReadError::TooLarge(FILE_SIZE_MAX)));
        }
        self.build(name, Source::new(name, text, base_dir, 0), None, environment, None)
    }

    /// All keys of a file, with `NAME` for names that the operator chooses.
    #[must_use]
    pub fn keys(&self) -> Vec<KnownKey> {
        let mut reader = FileReader::new(Source::new("", String::new(), Path::new(""), 0).into());
        reader.keys = Some(Vec::new());
        reader.read(|file| Draft::new(self).main_file(file));
        reader.keys.unwrap_or_default()
    }

    /// A JSON Schema of a file, with the main file's keys. Unknown keys do not fit.
    ///
    /// Descriptions say what a key means, what it must be, and its default.
    #[must_use]
    pub fn json_schema(&self) -> serde_json::Value {
        json_schema::json_schema(&self.keys())
    }

    /// Reads all files, then checks them together. `own_path` is the path of the main file, which does not include
    /// itself.
    fn build(
        &self,
        name: &str,
        source: Source,
        own_path: Option<&Path>,
        environment: &Environment,
        edited: Option<(&Path, &str)>,
    ) -> Result<Config, ConfigErrors> {
        let mut draft = Draft::new(self);
        let dir = source.dir.clone();
        let mut reader = FileReader::new(source.into());
        reader.read(|file| draft.main_file(file));
        let (mut errors, mut more) = reader.finish();

        let included = find_included(&draft.include, &dir, own_path, &mut errors);
        for (order, (path, location)) in included.into_iter().enumerate() {
            if errors.len() >= ERRORS_MAX {
                break;
            }
            let name = Path::new(name)
                .with_file_name(path.strip_prefix(&dir).unwrap_or(&path))
                .display()
                .to_string();
            let text = text_instead(&path, edited).map_or_else(|| read_text(&path, FILE_SIZE_MAX), Ok);
            match text {
                Ok(text) => {
                    let source = Source::new(&name, text, path.parent().unwrap_or(&dir), order + 1);
                    let mut reader = FileReader::new(source.into());
                    reader.read(|file| draft.included_file(file));
                    let (found, left_out) = reader.finish();
                    errors.extend(found);
                    more += left_out;
                }
                Err(error) => {
                    let message = format!("in `include`: cannot read {}: {error}", quote(&name));
                    errors.push(ConfigError::new("include", message, Some(location)));
                }
            }
        }
        judge(draft, environment, errors, more)
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.sections.iter().map(|section| section.table)).finish()
    }
}

/// The main file, and its absolute path.
pub(super) fn open(path: &Path) -> Result<(Source, PathBuf), ConfigErrors> {
    let name = path.display().to_string();
    let text = read_text(path, FILE_SIZE_MAX).map_err(|error| unreadable(&name, &error))?;
    let path = path::absolute(path).map_err(|error| unreadable(&name, &error.into()))?;
    Ok((Source::new(&name, text, path.parent().unwrap_or(&path), 0), path))
}

/// The text that stands for that of the file, if this is the edited one.
fn text_instead(path: &Path, edited: Option<(&Path, &str)>) -> Option<String> {
    let (edited, text) = edited?;
    let is_edited = path == edited
        || matches!((path.canonicalize(), edited.canonicalize()), (Ok(one), Ok(other)) if one == other);
    is_edited.then(|| text.to_owned())
}

fn unreadable(name: &str, error: &ReadError) -> ConfigErrors {
    let message = format!("cannot read {}: {error}", quote(name));
    ConfigErrors::new(vec![ConfigError::new("", message, None)], 0)
}

/// Makes the configuration of all that was read, and checks it.
fn judge(
    mut draft: Draft,
    environment: &Environment,
    mut errors: Vec<ConfigError>,
    more: usize,
) -> Result<Config, ConfigErrors> {
    let complete = errors.is_empty();
    let classes = Classes::new(mem::take(&mut draft.classes), environment, complete, &mut errors);
    let class_texts = draft.class_texts.as_str().into();
    let extensions = draft.settled_extensions(&classes, &mut errors);
    let Draft { mut main, queues, topics, peers, sections, mut locations, .. } = draft;
    main.cache_dir.get_or_insert_with(|| default_cache_dir(environment));
    let mut config = Config::new(main, extensions);
    for (name, (_, (queue, places))) in by_name("queue", queues, &mut errors) {
        locations.queues.insert(name.clone(), places);
        config.queues.insert(name, queue);
    }
    let topics = by_name("topic", topics, &mut errors).into_iter();
    config.topics = topics.map(|(name, (_, (topic, _)))| (name, topic)).collect();
    let mut peers: Vec<_> = by_name("peer", peers, &mut errors).into_values().collect();
    peers.sort_by_key(|(name_at, _)| name_at.order());
    (config.peers, locations.peers) = peers.into_iter().map(|(_, peer)| peer).unzip();
    let mut settling = Settling { classes: &classes, errors: &mut errors };
    for section in sections {
        section.settle(&mut settling, &mut config.sections, &mut locations.sections);
    }
    check::parts(&config, &locations, complete, &mut errors);
    if !errors.is_empty() {
        return Err(ConfigErrors::new(errors, more));
    }
    config.read_from = ReadFrom::new(locations);
    config.class_texts = class_texts;
    Ok(config)
}

/// The files that match the patterns, ordered by pattern, then by name, without repeats and without the main file.
fn find_included(
    patterns: &[Located<String>],
    dir: &Path,
    own_path: Option<&Path>,
    errors: &mut Vec<ConfigError>,
) -> Vec<(PathBuf, Location)> {
    let mut found: Vec<(PathBuf, Location)> = Vec::new();
    for (index, Located { value: pattern, location }) in patterns.iter().enumerate() {
        let mut report = |fault: String| {
            let message = format!("in `include`: {} {fault}", quote(pattern));
            errors.push(ConfigError::new("include", message, Some(location.clone())));
        };
        if index == PATTERNS_MAX {
            report(format!("is one too many: at most {PATTERNS_MAX} can be listed"));
            break;
        }
        let is_wild = |name: &&str| name.contains(['*', '?', '[']);
        if pattern.contains("**") || pattern.split('/').filter(is_wild).count() > WILD_NAMES_MAX {
            report(format!(
                "could match anything: at most {WILD_NAMES_MAX} of its names can have a `*`, and none `**`"
            ));
            continue;
        }
        let full = match Path::new(pattern).is_absolute() {
            true => pattern.clone(),
            false => format!("{}/{pattern}", Pattern::escape(&dir.display().to_string())),
        };
        let paths = match glob::glob_with(&full, GLOB_OPTIONS) {
            Ok(paths) => paths,
            Err(error) => {
                report(format!("is not a pattern: {}", error.msg));
                continue;
            }
        };
        let mut matched = false;
        for path in paths {
            matched = true;
            match path {
                Ok(path) if Some(&*path) == own_path || found.iter().any(|(other, _)| *other == path) => {}
                Ok(_) if found.len() == INCLUDED_FILES_MAX => {
                    report(format!("matches too many files: at most {INCLUDED_FILES_MAX} can be included"));
                    return found;
                }
                Ok(path) => found.push((path, location.clone())),
                Err(error) => report(format!("cannot be searched: {}", error.error())),
            }
        }
        if !is_wild(&pattern.as_str()) && !matched {
            report("is not there".to_owned());
        }
    }
    found
}

/// Why a file was not read. The text follows "cannot read", a name and a colon.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {}", bytes(*.0))]
    TooLarge(u64),
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// Reads a file of at most `max` bytes. Refuses a larger one, before reading it unless it grows meanwhile.
pub(super) fn read_text(path: &Path, max: u64) -> Result<String, ReadError> {
    let file = open_file(path)?;
    if file.metadata()?.len() > max {
        return Err(ReadError::TooLarge(max));
    }
    let mut bytes = Vec::new();
    // One more byte is read to see whether the file has grown meanwhile.
    file.take(max + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > max) {
        return Err(ReadError::TooLarge(max));
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8)
}

/// Opens a regular file to read it. Never waits for a FIFO.
pub(super) fn open_file(path: &Path) -> Result<File, ReadError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // A socket.
        Err(rustix::io::Errno::NXIO) => return Err(ReadError::NotAFile),
        Err(error) => return Err(ReadError::Io(error.into())),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(ReadError::NotAFile) }
}
