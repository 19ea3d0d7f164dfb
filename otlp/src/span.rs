//! One span, as Main tells it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, de::Error};

/// A span whose ids and times are checked. Its texts are a stranger's.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Span {
    #[serde(deserialize_with = "id")]
    pub(crate) trace: [u8; 16],
    #[serde(deserialize_with = "id")]
    pub(crate) span: [u8; 8],
    #[serde(default, deserialize_with = "some_id")]
    pub(crate) parent: Option<[u8; 8]>,
    #[serde(default)]
    pub(crate) link: Option<Link>,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) caller: Option<String>,
    #[serde(default)]
    pub(crate) provider: Option<String>,
    #[serde(default)]
    pub(crate) contract: Option<String>,
    #[serde(default)]
    pub(crate) operation: Option<String>,
    #[serde(default)]
    pub(crate) queue: Option<String>,
    #[serde(default)]
    pub(crate) topic: Option<String>,
    /// Nanoseconds since 1970.
    #[serde(deserialize_with = "moment")]
    pub(crate) start: u64,
    #[serde(deserialize_with = "seconds")]
    pub(crate) duration_seconds: Duration,
    #[serde(default)]
    pub(crate) waited_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) worked_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) fuel: Option<u64>,
    pub(crate) outcome: String,
}

/// A span that caused this one and is not its parent.
#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    #[serde(deserialize_with = "id")]
    pub(crate) trace: [u8; 16],
    #[serde(deserialize_with = "id")]
    pub(crate) span: [u8; 8],
}

/// An id in hexadecimal. All zeros is none, by the W3C's Trace Context.
fn parsed<const N: usize>(text: &str) -> Result<[u8; N], &'static str> {
    let mut id = [0; N];
    hex::decode_to_slice(text, &mut id).map_err(|_| "an id is not hexadecimal or has another length")?;
    if id == [0; N] { Err("an id is zero") } else { Ok(id) }
}

fn id<'de, D: Deserializer<'de>, const N: usize>(from: D) -> Result<[u8; N], D::Error> {
    parsed(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn some_id<'de, D: Deserializer<'de>, const N: usize>(from: D) -> Result<Option<[u8; N]>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| parsed(&text)).transpose().map_err(D::Error::custom)
}

fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let time: SystemTime = humantime::parse_rfc3339(&String::deserialize(from)?).map_err(D::Error::custom)?;
    let since = time.duration_since(UNIX_EPOCH).map_err(D::Error::custom)?;
    u64::try_from(since.as_nanos()).map_err(D::Error::custom)
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
}
