//! What `weir inspect` shows of an artifact.

use serde_json::json;
use weir_host::component::ArtifactFacts;

use super::Args;
use crate::{
    exit::Usage,
    output::{self, printable},
};

pub(super) fn show(args: &Args, artifact: &ArtifactFacts) -> anyhow::Result<()> {
    if args.sizes || args.measured.is_some() {
        return Err(
            Usage("`--sizes` and `--measured` need the component, not its artifact".to_owned()).into()
        );
    }
    let ArtifactFacts { bytes, sha256, target, key, is_signed } = artifact;
    let (triple, class) = (target.triple(), target.address_class().name());
    if args.json {
        return output::json(&json!({
            "bytes": bytes,
            "sha256": sha256.to_string(),
            "target": triple,
            "address-space": class,
            "key": key.to_string(),
            "signed": is_signed,
        }));
    }
    let signed = if *is_signed { "" } else { ", but the file was changed since" };
    output::write(
        format!(
            "# {}\n# size           {bytes} bytes\n# sha-256        {sha256}\n# target         {}\n\
             # address space  {class}\n# signed with    {key}{signed}\n",
            printable(&args.file.display().to_string()),
            printable(&triple),
        )
        .as_bytes(),
    )
}
