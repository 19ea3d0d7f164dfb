//! The tables of one extension as the operator wrote them, to be read again after the file has changed.
//!
//! Knows nothing of where stanzas are kept.

use std::{
    fmt::Display,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::{
    Config, ConfigErrors, ExtensionConfig, Loader,
    classes::Classes,
    environment::Environment,
    error::{ConfigError, Source},
    read::FileReader,
    sections::Draft,
};

/// The most text of a stanza that is kept, in bytes. The tables of an extension take about one kibibyte.
const TEXT_MAX: usize = 64 * 1024;

/// The name of the text in messages, and the file of limits that are set in it.
const NAME: &str = "stanza";

/// The tables of one extension and of all classes of limits as the operator wrote them, with the directories that their
/// paths start at. [`config`](Self::config) reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stanza {
    /// The classes of all files, which all stanzas of a configuration share.
    classes: Arc<str>,
    extension: String,
    /// The directory of the file with the extension.
    dir: PathBuf,
    plugin_dir: Option<PathBuf>,
}

impl Config {
    /// Reads one table `[[extension]]` as a file beside the components would have it. Classes are those of this
    /// configuration's files, and the text may have more.
    ///
    /// # Errors
    ///
    /// All faults in the text. The rules between extensions are not checked.
    pub fn read_extension(&self, text: &str) -> Result<ExtensionConfig, ConfigErrors> {
        let plugin_dir = self.main.plugin_dir.clone();
        let (classes, extension) = (self.class_texts.clone(), text.to_owned());
        let dir = plugin_dir.clone().unwrap_or_else(|| PathBuf::from("."));
        Stanza { classes, extension, dir, plugin_dir }.draft(&Environment::of_process())
    }
}

impl ExtensionConfig {
    /// Forgets the stanza if it says something else, because this configuration was changed in Rust.
    pub fn forget_other_stanza(&mut self) {
        // A stanza tells of the first instance.
        let first = Self { instances: 1, ..self.clone() };
        let is_own = |stanza: &Arc<Stanza>| stanza.config().is_ok_and(|config| config.runs_as(&first));
        if !self.stanza.as_ref().is_some_and(is_own) {
            self.stanza = None;
        }
    }
}

impl Stanza {
    /// The extension's table in a file of this directory, without classes.
    pub(super) fn of_extension(table: &DeTable<'_>, dir: &Path, plugin_dir: Option<&Path>) -> Self {
        Self {
            classes: Arc::default(),
            extension: format!("[[extension]]\n{}", lines(table)),
            dir: dir.to_owned(),
            plugin_dir: plugin_dir.map(ToOwned::to_owned),
        }
    }

    /// The stanza with these classes. `None` if it is too long to be kept.
    pub(super) fn with_classes(&self, classes: &Arc<str>) -> Option<Arc<Self>> {
        let is_short = self.extension.len().saturating_add(classes.len()) <= TEXT_MAX;
        is_short.then(|| Arc::new(Self { classes: Arc::clone(classes), ..self.clone() }))
    }

    /// The configuration of the extension: that of its first instance, as Main gets it from
    /// [`Config::into_parts`](super::Config::into_parts). Environment variables change its classes, as when a
    /// [`Loader`] reads a file; those for other classes are ignored.
    ///
    /// # Errors
    ///
    /// All faults in the text and in the variables. The rules between extensions are not checked.
    pub fn config(&self) -> Result<ExtensionConfig, ConfigErrors> {
        self.config_with(&Environment::of_process())
    }

    fn config_with(&self, environment: &Environment) -> Result<ExtensionConfig, ConfigErrors> {
        let first = self.draft(environment)?.first_instance(self.plugin_dir.clone());
        Ok(ExtensionConfig { stanza: Some(Arc::new(self.clone())), ..first })
    }

    /// The extension as its table says, with all of its instances.
    fn draft(&self, environment: &Environment) -> Result<ExtensionConfig, ConfigErrors> {
        // First the extension, whose lines errors name.
        let text = [&*self.extension, "\n", &*self.classes].concat();
        let mut reader = FileReader::new(Source::new(NAME, text, &self.dir, 0).into());
        let mut draft = Draft::new(&Loader::new());
        draft.main.plugin_dir.clone_from(&self.plugin_dir);
        reader.read(|file| draft.shared(file));
        let (mut errors, more) = reader.finish();
        let classes = Classes::new(mem::take(&mut draft.classes), environment, false, &mut errors);
        let extensions = draft.settled_extensions(&classes, &mut errors);
        let others = [
            ("queue", !draft.queues.is_empty()),
            ("topic", !draft.topics.is_empty()),
            ("peer", !draft.peers.is_empty()),
        ];
        for (table, _) in others.iter().filter(|(_, is_there)| *is_there) {
            let message = format!("`{table}` belongs in the configuration's file, not beside one extension");
            errors.push(ConfigError::new(*table, message, None));
        }
        match <[ExtensionConfig; 1]>::try_from(extensions) {
            Ok([extension]) if errors.is_empty() => Ok(extension),
            _ => {
                if errors.is_empty() {
                    errors.push(ConfigError::new("extension", "a stanza has one extension", None));
                }
                Err(ConfigErrors::new(errors, more))
            }
        }
    }
}

/// The table of a class with this name.
pub(super) fn class(name: &str, table: &DeTable<'_>) -> String {
    format!("[limits.{}]\n{}", quoted(name), lines(table))
}

/// The keys of a table, each on a line.
fn lines(table: &DeTable<'_>) -> String {
    let mut text = String::new();
    for (key, value) in table {
        text.push_str(&quoted(key.get_ref()));
        text.push_str(" = ");
        write_value(value.get_ref(), &mut text);
        text.push('\n');
    }
    text
}

/// Writes a value without line ends.
fn write_value(value: &DeValue<'_>, text: &mut String) {
    let number: &dyn Display = match value {
        DeValue::String(string) => return text.push_str(&quoted(string)),
        DeValue::Array(items) => {
            text.push('[');
            for item in items.iter() {
                write_value(item.get_ref(), text);
                text.push(',');
            }
            return text.push(']');
        }
        DeValue::Table(table) => {
            text.push('{');
            for (number, (key, value)) in table.iter().enumerate() {
                // An inline table has no comma at its end.
                text.push_str(if number == 0 { "" } else { "," });
                text.push_str(&quoted(key.get_ref()));
                text.push('=');
                write_value(value.get_ref(), text);
            }
            return text.push('}');
        }
        DeValue::Integer(integer) => integer,
        DeValue::Float(float) => float,
        DeValue::Boolean(flag) => flag,
        DeValue::Datetime(time) => time,
    };
    text.push_str(&number.to_string());
}

/// A string as TOML has it in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // TOML refuses these, and DEL, in a string.
            character if character.is_ascii_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
