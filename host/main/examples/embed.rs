//! Hosts extensions from async code: `cargo run -p weir-host --example embed -- device.toml`.
//!
//! Serves a contract, listens to events, and makes the call on the command line:
//! `… -- device.toml device.info@1 memory '{}'`.

use std::path::Path;

use weir_host::{Main, Service};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "examples/device.toml".to_owned());

    // A contract for extensions, answered by this program.
    let platform =
        Service::new("platform.info@1".parse()?).on("model".parse()?, async |_request| Ok("weir-box".into()));

    let main = Main::builder(weir_host::load(Path::new(&file))?).serve(platform).start().await?;
    for extension in main.control().extensions() {
        tracing::info!("{} is {:?} {}", extension.id, extension.state, extension.reason.unwrap_or_default());
    }

    // Events from here on, until Main has ended.
    let mut events = main.control().events();
    let listener = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            tracing::info!("{event:?}");
        }
    });

    if let (Some(contract), Some(operation)) = (arguments.next(), arguments.next()) {
        let payload = arguments.next().unwrap_or_else(|| "{}".to_owned());
        let answer = main.client().call(&contract, &operation, payload).await?;
        tracing::info!("{contract} {operation} answered {}", String::from_utf8_lossy(&answer));
    }

    main.shutdown().await?;
    listener.await?;
    Ok(())
}
