//! What a server is asked for.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// A line to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Used,
    Publish(Packets),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    pub(crate) count: u32,
    pub(crate) bytes: u32,
    pub(crate) interval_us: u32,
}

impl FromStr for Asked {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let mut words = line.split(' ');
        match words.next() {
            Some("used") => Ok(Self::Used),
            what => {
                ensure!(what == Some("publish"), "a server is asked `used` or `publish`");
                let mut number = || Ok::<u32, anyhow::Error>(words.next().context("three numbers")?.parse()?);
                let (count, bytes, interval_us) = (number()?, number()?, number()?);
                Ok(Self::Publish(Packets { count, bytes, interval_us }))
            }
        }
    }
}
