//! Keeps the settings of the device and publishes their changes: the contract `settings@1`.
//!
//! Each setting is one key of `local.storage@1`, `settings/KEY`, with its value and its type. The extension
//! reads all of them at start, and then answers from memory. It stores a change, publishes it as
//! `settings.changed.KEY`, and then answers. A change that was answered with an error of storage may still be
//! there after the next start, as with any request without an answer.
//!
//! Errors of its own: `not-found`, `wrong-type`, `full`, `invalid-argument`. Errors of storage are passed on.

use std::{cell::RefCell, collections::BTreeMap, process::ExitCode};

use futures_util::lock::Mutex;
use weir_contracts::{
    settings::{self, Changed, Entry, Key, Prefix, Previous, Setting, Settings},
    storage,
};
use weir_sdk::{Context, Error, Extension, log};

mod kind;

weir_sdk::manifest! {
    id: "settings",
    fulfills: &[settings::CONTRACT],
    requires: &[storage::CONTRACT],
    publishes: &[settings::CHANGED.pattern()],
}

/// What the keys of settings begin with in storage.
const STORED: &str = "settings/";

const MAX_SETTINGS: usize = 1024;

/// The longest key, in bytes. A topic with it stays well within its 256 bytes.
const MAX_KEY: usize = 128;

/// The most bytes of all keys and texts together, so that one answer can list all of them.
const MAX_BYTES: usize = 256 * 1024;

/// The longest text as a value, in bytes.
const MAX_TEXT: usize = 4096;

fn main() -> ExitCode {
    extension().run()
}

fn extension() -> Extension<Device> {
    Extension::new(MANIFEST, Device::default())
        .on_start(Device::load)
        .on(settings::GET, async |device: &Device, _: &Context, key| device.get(key))
        .on(settings::SET, Device::set)
        .on(settings::LIST, async |device: &Device, _: &Context, prefix| Ok(device.list(&prefix)))
}

/// The settings of the device, as in storage.
#[derive(Default)]
struct Device {
    settings: RefCell<BTreeMap<String, Setting>>,
    /// Held during a change, so that changes are published in the order in which they are stored.
    changing: Mutex<()>,
}

impl Device {
    async fn load(&self, context: &Context) -> Result<(), Error> {
        let stored = context.call(storage::LIST, &storage::Prefix { prefix: STORED.into() }).await?;
        for stored_key in stored.keys.into_iter().take(MAX_SETTINGS) {
            let found = context.call(storage::GET, &storage::Key { key: stored_key.clone() }).await?;
            let setting = found.value.and_then(|value| serde_json::from_value(value).ok());
            let key = stored_key.strip_prefix(STORED).filter(|key| is_key(key));
            match (key, setting) {
                (Some(key), Some(setting)) if kind::fits(&setting) => {
                    self.settings.borrow_mut().insert(key.to_owned(), setting);
                }
                // Any caller of storage can write there.
                _ => log::warn("what is stored here is no setting", &[("key", &stored_key)]),
            }
        }
        Ok(())
    }

    fn get(&self, Key { key }: Key) -> Result<Setting, Error> {
        let found = self.settings.borrow().get(&key).cloned();
        found.ok_or_else(|| Error::handler("not-found", format_args!("no setting `{}`", key.escape_debug())))
    }

    async fn set(&self, context: &Context, Entry { key, value }: Entry) -> Result<Previous, Error> {
        if !is_key(&key) {
            return Err(Error::invalid_argument(format_args!(
                "a key is 1 to {MAX_KEY} letters, digits, `-` and `_`"
            )));
        }
        if value.as_str().is_some_and(|text| text.len() > MAX_TEXT) {
            return Err(Error::invalid_argument(format_args!("a text has at most {MAX_TEXT} bytes")));
        }
        let _changing = self.changing.lock().await;
        let old = self.settings.borrow().get(&key).cloned();
        if old.is_none() && self.settings.borrow().len() >= MAX_SETTINGS {
            return Err(Error::handler("full", format_args!("there are {MAX_SETTINGS} settings already")));
        }
        let more = key.len() + text_length(&value);
        let others =
            self.settings.borrow().iter().filter(|(other, _)| **other != key).map(size).sum::<usize>();
        if others + more > MAX_BYTES {
            return Err(Error::handler(
                "full",
                format_args!("all settings may have {MAX_BYTES} bytes together"),
            ));
        }
        let setting = kind::setting(value, old.as_ref())?;
        // Stored even if it is the same: an earlier change may be on disk although it failed here.
        let stored = storage::Entry { key: format!("{STORED}{key}"), value: serde_json::to_value(&setting)? };
        context.call(storage::SET, &stored).await?;
        let value = setting.value.clone();
        self.settings.borrow_mut().insert(key.clone(), setting);
        let previous = old.map(|old| old.value);
        if previous.as_ref() != Some(&value) {
            publish(context, Changed { key, value, previous: previous.clone() });
        }
        Ok(Previous { previous })
    }

    fn list(&self, Prefix { prefix }: &Prefix) -> Settings {
        let settings = self.settings.borrow();
        let with_prefix = settings.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(prefix));
        Settings { settings: with_prefix.map(|(key, setting)| (key.clone(), setting.clone())).collect() }
    }
}

fn size((key, setting): (&String, &Setting)) -> usize {
    key.len() + text_length(&setting.value)
}

fn text_length(value: &serde_json::Value) -> usize {
    value.as_str().map_or(0, str::len)
}

/// The change is made and cannot fail any more, so an error of the event only goes to the log.
fn publish(context: &Context, changed: Changed) {
    if let Err(error) = context.publish(settings::CHANGED.at(&changed.key), &changed) {
        log::warn("a change could not be published", &[("key", &changed.key), ("error", &error)]);
    }
}

/// Whether a key can be a segment of a topic and is not too long.
fn is_key(key: &str) -> bool {
    (1..=MAX_KEY).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests;
