//! Reads the main file and its included files, within bounds, and combines them.

use std::{
    path::{self, Path, PathBuf},
    sync::Arc,
};

use glob::{MatchOptions, Pattern};

use super::{
    Config, ConfigErrors, ConfigFile, ExtensionConfig, Loader,
    cache_dir::default_cache_dir,
    check::{ReadFrom, between_parts, memory_budget, subscriptions},
    classes::Classes,
    environment::Environment,
    error::{ConfigError, ERRORS_MAX, Location, Source, quote},
    named::by_name,
    read::Reader,
    schema::Settling,
    section::{KnownKey, Located},
    sections::Draft,
    text_file::{ReadError, read},
};

/// Largest file, in bytes. A thousand extensions take a fifth of it.
const FILE_SIZE_MAX: u64 = 1024 * 1024;

/// Included files in total.
const INCLUDED_FILES_MAX: usize = 64;

/// Patterns in `include`, and wildcard names in each. More might search whole disks.
const PATTERNS_MAX: usize = 64;
const WILD_NAMES_MAX: usize = 2;

/// `*` matches no hidden files: editors keep backups under such names.
const GLOB_OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

pub(super) fn load(path: &Path, loader: &Loader, environment: &Environment) -> Result<Config, ConfigErrors> {
    let (text, name, path) = main_file(path)?;
    let config = build(text, &name, dir_of(&path), Some(&path), loader, environment)?;
    Ok(Config { file: Some(ConfigFile::new(path, loader.clone())), ..config })
}

pub(super) fn keys(loader: &Loader) -> Vec<KnownKey> {
    let mut reader = Reader::new(Arc::new(Source::new("", String::new(), Path::new(""), 0)));
    reader.keys = Some(Vec::new());
    reader.read(|file| Draft::new(loader).main_file(file));
    reader.keys.unwrap_or_default()
}

pub(super) fn open(path: &Path) -> Result<Arc<Source>, ConfigErrors> {
    let (text, name, path) = main_file(path)?;
    Ok(Arc::new(Source::new(&name, text, dir_of(&path), 0)))
}

/// The text, the name and the absolute path.
fn main_file(path: &Path) -> Result<(String, String, PathBuf), ConfigErrors> {
    let name = path.display().to_string();
    let cannot = |error: ReadError| {
        let message = format!("cannot read {}: {error}", quote(&name));
        ConfigErrors::new(vec![ConfigError::new("", message, None)], 0)
    };
    let text = read(path, FILE_SIZE_MAX).map_err(cannot)?;
    let path = path::absolute(path).map_err(|error| cannot(error.into()))?;
    Ok((text, name, path))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

pub(super) fn parse(
    text: String,
    name: &str,
    dir: &Path,
    loader: &Loader,
    environment: &Environment,
) -> Result<Config, ConfigErrors> {
    build(text, name, dir, None, loader, environment)
}

/// Reads all files, then checks them together. `own_path` is that of the main file.
fn build(
    text: String,
    name: &str,
    dir: &Path,
    own_path: Option<&Path>,
    loader: &Loader,
    environment: &Environment,
) -> Result<Config, ConfigErrors> {
    let mut draft = Draft::new(loader);
    if u64::try_from(text.len()).is_ok_and(|size| size > FILE_SIZE_MAX) {
        let message = format!("cannot read {}: {}", quote(name), ReadError::TooLarge(FILE_SIZE_MAX));
        return Err(ConfigErrors::new(vec![ConfigError::new("", message, None)], 0));
    }
    let mut reader = Reader::new(Arc::new(Source::new(name, text, dir, 0)));
    reader.read(|file| draft.main_file(file));
    let (mut errors, mut more) = reader.finish();

    let included = find_included(&draft.include, dir, own_path, &mut errors);
    for (order, (path, location)) in included.into_iter().enumerate() {
        if errors.len() >= ERRORS_MAX {
            break;
        }
        let name =
            Path::new(name).with_file_name(path.strip_prefix(dir).unwrap_or(&path)).display().to_string();
        match read(&path, FILE_SIZE_MAX) {
            Ok(text) => {
                let source = Source::new(&name, text, path.parent().unwrap_or(dir), order + 1);
                let mut reader = Reader::new(Arc::new(source));
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

fn judge(
    draft: Draft,
    environment: &Environment,
    mut errors: Vec<ConfigError>,
    more: usize,
) -> Result<Config, ConfigErrors> {
    let complete = errors.is_empty();
    let Draft { mut main, classes, extensions, queues, topics, peers, sections, mut locations, .. } = draft;
    main.cache_dir.get_or_insert_with(|| default_cache_dir(environment));
    let classes = Classes::new(classes, environment, complete, &mut errors);
    let extensions = extensions.into_iter().zip(&locations.extensions).map(|(config, places)| {
        let path = format!("extension[{}]", config.id);
        let limits = classes.limits(&config.limits, places, &path, &mut errors);
        ExtensionConfig { limits, ..config }
    });
    let extensions = extensions.collect();
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
    if errors.is_empty() {
        errors.extend(subscriptions(&config, &locations));
    }
    errors.extend(between_parts(&config, &locations, complete));
    if errors.is_empty() {
        errors.extend(memory_budget(&config, &locations));
    }
    if !errors.is_empty() {
        return Err(ConfigErrors::new(errors, more));
    }
    config.read_from = ReadFrom::new(locations);
    Ok(config)
}

/// The files that match the patterns, ordered by pattern, then by name, without repeats.
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
