//! `weir outdated`: which extensions have a newer version at their source.

use semver::Version;
use weir_host::MainConfig;

use super::{
    Fetched, OfFile,
    device::Device,
    source::Source,
    upgrade::{Present, sources},
};
use crate::{
    client::Interrupted,
    exit::{Said, say},
    output::{self, printable},
    tables::{NOTHING, lined_up},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks where the component of each extension came from: a path is read again, and of a registry the tags that are
versions are listed. Changes nothing. Exit code 1: a source could not be looked at.

Examples:
  weir outdated
  weir outdated --config /etc/weir/weir.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    file: OfFile,
}

struct Row {
    id: String,
    present: Option<Version>,
    available: Version,
    source: Source,
}

pub(crate) async fn run(Args { file }: Args) -> anyhow::Result<()> {
    let sources = sources(&file).await?;
    let (present, main) = {
        let device = Device::open(&file.config).await?;
        let of = |id: &str| device.extension(id).and_then(|extension| Present::of(extension).version);
        (sources.iter().map(|(id, _)| of(id)).collect::<Vec<_>>(), device.config.main)
    };
    let (mut rows, mut has_failed) = (Vec::new(), false);
    for ((id, source), present) in sources.into_iter().zip(present) {
        match available(&source, &main).await {
            Ok(Some((available, source))) if present.as_ref() < Some(&available) => {
                rows.push(Row { id, present, available, source });
            }
            Ok(_) => {}
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                say(&error.context(format!("`{id}`")));
                has_failed = true;
            }
        }
    }
    let text = lined_up(
        &rows,
        &[
            ("ID", &|row| row.id.clone()),
            ("VERSION", &|row| row.present.as_ref().map_or_else(|| NOTHING.to_owned(), Version::to_string)),
            ("AVAILABLE", &|row| row.available.to_string()),
            ("SOURCE", &|row| printable(&row.source.to_string())),
        ],
    );
    if !rows.is_empty() {
        output::write(text.as_bytes())?;
    } else if !has_failed {
        output::line("nothing is outdated")?;
    }
    if has_failed { Err(Said.into()) } else { Ok(()) }
}

/// The newest version at a source, and where it is there. None if there is none but the present one.
async fn available(source: &Source, main: &MainConfig) -> anyhow::Result<Option<(Version, Source)>> {
    let Some(newest) = source.newest().await? else { return Ok(None) };
    let fetched = Fetched::of(newest, main).await?;
    Ok(Some((fetched.version()?, fetched.source)))
}
