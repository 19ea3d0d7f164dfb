//! The least program that embeds Weir: one extension, one call.
//! `cargo run -p weir-host --example first -- target/plugins/echo.wasm`

use std::{error::Error, io::Write};

use weir_host::{Config, ExtensionConfig, Main, MainConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let component = std::env::args().nth(1).ok_or("name the component")?;
    let mut echo = ExtensionConfig::new("echo".parse()?, component);
    echo.fulfills = vec!["echo@1".parse()?];
    let main = Main::builder(Config::new(MainConfig::default(), vec![echo])).start().await?;
    let answer = main.client().call("echo@1", "echo", "hello\n").await?;
    std::io::stdout().write_all(&answer)?;
    main.shutdown().await?;
    Ok(())
}
