//! The operator's configuration.

use std::path::{Path, PathBuf};

use weir_host::{
    Config,
    component::Signature,
    config::{ComponentSource, ExtensionConfig},
};

use crate::{
    c::{Data, ErrorOut, Text, given, run, run_infallible},
    error::weir_error,
};

/// A configuration: the operator's file, or a text like it. One thread at a time may use it. Free it with
/// `weir_config_free`, unless a function has taken it.
#[derive(Debug)]
pub struct weir_config(pub(crate) Config);

/// Reads a configuration from the file at `path`, with the files that it includes. Any thread; it reads files.
///
/// Errors: `WEIR_ERROR_KIND_CONFIG` with every mistake, its file, line and column.
#[unsafe(no_mangle)]
pub extern "C" fn weir_config_load(path: Text, error: ErrorOut) -> Option<Box<weir_config>> {
    run(error, || Ok(Some(Box::new(weir_config(weir_host::load(Path::new(path.get("path")?))?)))))
}

/// Reads a configuration from a text in the form of the file. Errors call the text `name`, or `configuration` if that
/// is NULL. Its paths are relative to `base_dir`, or to the working directory if that is NULL. Any thread; it may read
/// files.
///
/// Errors: `WEIR_ERROR_KIND_CONFIG` with every mistake, its file, line and column.
/// `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `base_dir` is NULL and there is no working directory.
#[unsafe(no_mangle)]
pub extern "C" fn weir_config_parse(
    text: Text,
    name: Text,
    base_dir: Text,
    error: ErrorOut,
) -> Option<Box<weir_config>> {
    run(error, || {
        let name = name.optional("name")?.unwrap_or("configuration");
        let base_dir = match base_dir.optional("base_dir")? {
            Some(base_dir) => PathBuf::from(base_dir),
            None => std::env::current_dir().map_err(|error| {
                weir_error::argument(format!("there is no working directory, so name a `base_dir`: {error}"))
            })?,
        };
        Ok(Some(Box::new(weir_config(weir_host::parse(text.get("text")?, name, &base_dir)?))))
    })
}

/// Takes the component of the extension `id` from memory, instead of the file at its `path`. Copies the bytes. Any
/// thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if no extension has this id, or there are no bytes.
#[unsafe(no_mangle)]
pub extern "C" fn weir_config_set_component(
    config: Option<&mut weir_config>,
    id: Text,
    component: Data,
    length: usize,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let (config, id) = (given(config, "config")?, id.get("id")?);
        let component = component.bytes(length, "component")?;
        if component.is_empty() {
            return Err(weir_error::argument("the component has no bytes"));
        }
        let component = bytes::Bytes::copy_from_slice(component);
        config.each(id, |extension| extension.component = ComponentSource::Bytes(component.clone()))
    })
}

/// Takes the signature of the component of the extension `id` from memory: the text of a `.sig` file. With
/// `main.require-signature`, a component from memory needs it. Copies the text. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if no extension has this id, or the text has more than 1024 bytes.
#[unsafe(no_mangle)]
pub extern "C" fn weir_config_set_signature(
    config: Option<&mut weir_config>,
    id: Text,
    signature: Text,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let (config, id, signature) = (given(config, "config")?, id.get("id")?, signature.get("signature")?);
        if signature.len() > Signature::MAX_BYTES {
            let message = format!("the signature has more than {} bytes", Signature::MAX_BYTES);
            return Err(weir_error::argument(message));
        }
        config.each(id, |extension| extension.signature = Some(signature.into()))
    })
}

impl weir_config {
    /// Changes each instance of an extension. Those of an extension with `instances` have entries of their own.
    fn each(&mut self, id: &str, change: impl Fn(&mut ExtensionConfig)) -> Result<bool, weir_error> {
        let mut found = false;
        for extension in &mut self.0.extensions {
            if extension.id.as_str() == id || extension.copy_of.as_ref().is_some_and(|of| of.as_str() == id) {
                change(extension);
                found = true;
            }
        }
        found.then_some(true).ok_or_else(|| {
            weir_error::argument(format!(
                "no extension `{id}` is configured: add an `[[extension]]` with this id"
            ))
        })
    }
}

/// Frees a configuration that no function has taken. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_config_free(config: Option<Box<weir_config>>) {
    run_infallible(|| drop(config));
}
