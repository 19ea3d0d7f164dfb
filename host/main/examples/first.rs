//! The shortest embedding: one extension in memory, one call. `cargo run -p weir-host --example first`

use std::{error::Error, io::Write};

use weir_host::{Config, ExtensionConfig, Main, MainConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut echo = ExtensionConfig::from_bytes("echo".parse()?, include_bytes!("echo.wasm"));
    echo.fulfills = vec!["echo@1".parse()?];
    let main = Main::builder(Config::new(MainConfig::default(), vec![echo])).start().await?;
    let answer = main.client().call("echo@1", "echo", "hello\n").await?;
    std::io::stdout().write_all(&answer)?;
    main.shutdown().await?;
    Ok(())
}
