//! `weir generate`.

use std::fs;

use anyhow::Context;
use weir_generate::generate as source;

use super::documents::Source;
use crate::{args::GenerateArgs, exit::Usage, output};

pub(crate) async fn generate(args: GenerateArgs) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    for which in &args.which {
        let described = Source::of(which).load(&args.target).await?;
        documents.extend(described.into_iter().map(|described| described.document));
    }
    let language = args.language.into();
    let kind = args.kind.map_or(weir_generate::Language::usual_kind(language), Into::into);
    let text = source(&documents, language, kind).map_err(|error| Usage(error.to_string()))?;
    match &args.output {
        Some(path) => fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display())),
        None => output::write(text.as_bytes()),
    }
}
