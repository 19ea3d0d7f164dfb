//! Hosts extensions without async code:
//! `cargo run -p weir-host --example embed_blocking -- device.toml device.info@1 memory`.

use std::path::Path;

use weir_host::{Main, Service, blocking::wait};

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "examples/device.toml".to_owned());

    // This handler may block: it runs on a thread pool.
    let platform = Service::new("platform.info@1".parse()?)
        .on_blocking("model".parse()?, |_request| Ok("weir-box".into()));

    let main = wait(Main::builder(weir_host::load(Path::new(&file))?).serve(platform).start())?;
    if let (Some(contract), Some(operation)) = (arguments.next(), arguments.next()) {
        let client = main.client();
        for _ in 0..10 {
            let answer = wait(client.call(&contract, &operation, "{}"))?;
            tracing::info!("{contract} {operation} answered {}", String::from_utf8_lossy(&answer));
        }
    }
    main.shutdown_blocking()?;
    Ok(())
}
