//! A directory with different components, and a cache that can be emptied.

use std::{fs, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use weir_host::Config;

use crate::guests::Guests;

#[derive(Debug)]
pub(super) struct Site {
    dir: TempDir,
    extensions: Vec<Extension>,
}

#[derive(Debug)]
pub(super) struct Extension {
    pub(super) name: String,
    /// The size of its component.
    pub(super) kibibytes: f64,
}

impl Site {
    pub(super) fn new(guests: &Guests, count: usize) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        fs::create_dir(dir.path().join("data")).context("cannot make a directory")?;
        let mut site = Self { dir, extensions: Vec::new() };
        for extension in site.configured()?.extensions.into_iter().take(count) {
            let name = extension.id.to_string();
            // As in `bench-guest-2`.
            let numbered =
                name.rsplit_once('-').and_then(|(built, number)| Some((built, number.parse().ok()?)));
            let (built, number) = numbered.map_or((&*name, None), |(built, number)| (built, Some(number)));
            let built = guests.component(built);
            let mut component =
                fs::read(&built).with_context(|| format!("cannot read `{}`", built.display()))?;
            component.extend(number.map(number_section).unwrap_or_default());
            let file = extension.component.path().context("it comes from no file")?;
            fs::write(file, &component).context("cannot write a component")?;
            let kibibytes = f64::from(u32::try_from(component.len())?) / 1024.0;
            site.extensions.push(Extension { name, kibibytes });
        }
        Ok(site)
    }

    pub(super) fn extensions(&self) -> &[Extension] {
        &self.extensions
    }

    pub(super) fn config(&self) -> Result<Config> {
        let mut config = self.configured()?;
        config.main.cache_dir = Some(self.cache());
        config.extensions.truncate(self.extensions.len());
        Ok(config)
    }

    pub(super) fn clear_cache(&self) -> Result<()> {
        match fs::remove_dir_all(self.cache()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("cannot empty the cache"),
            _ => Ok(()),
        }
    }

    fn configured(&self) -> Result<Config> {
        Ok(weir_host::parse(include_str!("ten.toml"), "ten.toml", self.dir.path())?)
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }
}

/// A custom section of the binary format with a number as its content: id, size, length and text of the name,
/// number. It makes a component differ from the others.
fn number_section(number: u8) -> Vec<u8> {
    [&[0, 8, 6], b"number".as_slice(), &[number]].concat()
}
