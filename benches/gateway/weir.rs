//! Main with a gateway, and an extension that publishes.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use bytes::Bytes;
use weir_gateway::{Gateway, GatewayConfig};
use weir_host::{CallOptions, Main, blocking::wait, control::ExtensionState};

use crate::{
    Answering, line,
    packets::{Asked, Packets},
    processor_time,
};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn start(file: &Path) -> Result<Answering> {
    let config = weir_host::loader().section::<GatewayConfig>().load(file)?;
    let gateway = config.section::<GatewayConfig>().map(Gateway::bind).transpose()?.flatten();
    let mut builder = Main::builder(config);
    if let Some(gateway) = gateway {
        builder = builder.attach(|attached| gateway.serve(attached));
    }
    let main = wait(builder.start())?;
    for extension in main.control().extensions() {
        let state = extension.state;
        ensure!(state == ExtensionState::Ready, "`{}` is {state:?}: {:?}", extension.id, extension.reason);
    }
    Ok(Box::new(move |asked| match asked.parse()? {
        Asked::Used => Ok(processor_time().to_string()),
        Asked::Publish(packets) => publish(&main, packets),
    }))
}

fn publish(main: &Main, Packets { count, bytes, interval_us }: Packets) -> Result<String> {
    let arguments: Bytes =
        [count, bytes, interval_us].iter().flat_map(|number| number.to_le_bytes()).collect();
    let options = CallOptions::default().timeout(PATIENCE);
    let times = wait(main.client().call_with("publisher@1", "publish", arguments, options))?;
    Ok(line(times.as_chunks().0.iter().copied().map(u64::from_le_bytes)))
}
