//! `weir inspect`.

use crate::{
    args::InspectArgs,
    output::{self, printable},
};

pub(crate) fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let found = weir_host::component::inspect(&args.file)?;
    let (notes, stanza) = (found.notes(), found.stanza());
    if args.json {
        let mut json = serde_json::to_value(&found)?;
        if let Some(json) = json.as_object_mut() {
            json.insert("notes".to_owned(), notes.into());
            json.insert("stanza".to_owned(), stanza.into());
        }
        return output::json(&json);
    }
    let mut text = format!("# {}\n", printable(&args.file.display().to_string()));
    let mut fact = |name: &str, value: &str| text.push_str(&format!("# {name:<9}{}\n", printable(value)));
    if let Some(manifest) = &found.manifest {
        fact("version", &manifest.version);
    }
    fact("size", &format!("{} bytes", found.bytes));
    fact("sha-256", &found.sha256.to_string());
    for (what, names) in [("imports", &found.imports), ("exports", &found.exports)] {
        for (index, name) in names.iter().enumerate() {
            fact(if index == 0 { what } else { "" }, name);
        }
    }
    for note in notes {
        fact("note", &note);
    }
    output::write(format!("{text}\n{stanza}").as_bytes())
}
