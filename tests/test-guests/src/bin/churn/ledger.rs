//! The ledger, as its writers see it.

use serde::{Serialize, de::DeserializeOwned};
use test_guests::{
    churn::{Begun, Handled, Heard, LEDGER, Report},
    words::text,
};
use weir_sdk::raw::requests::{self, Options};

/// The numbers of its operations.
pub(crate) struct Ledger {
    handled: u32,
    heard: u32,
    report: u32,
    complain: u32,
    hold: u32,
    stay: u32,
}

impl Ledger {
    pub(crate) fn begin() -> Result<(Self, Begun), String> {
        let open = |operation| requests::open(LEDGER, operation, None).map_err(text);
        let ledger = Self {
            handled: open("handled")?,
            heard: open("heard")?,
            report: open("report")?,
            complain: open("complain")?,
            hold: open("hold")?,
            stay: open("stay")?,
        };
        Ok((ledger, call(open("begin")?, &())?))
    }

    pub(crate) fn handled(&self, handled: Handled) -> Result<(), String> {
        call(self.handled, &handled)
    }

    pub(crate) fn heard(&self, heard: Heard) -> Result<(), String> {
        call(self.heard, &heard)
    }

    pub(crate) fn report(&self, report: &Report) -> Result<bool, String> {
        call(self.report, report)
    }

    pub(crate) fn complain(&self, fault: &str) -> Result<(), String> {
        call(self.complain, &fault)
    }

    /// Does not return: has this extension killed from outside, or waits for that.
    pub(crate) fn hold(&self, be_killed: bool) {
        let outcome: Result<(), _> = call(if be_killed { self.hold } else { self.stay }, &());
        // Too late to handle an error.
        let _complained = self.complain(&format!("was held, and got {outcome:?}"));
    }
}

fn call<T: DeserializeOwned>(operation: u32, arguments: &impl Serialize) -> Result<T, String> {
    let options = Options { timeout_ms: None, parent: None };
    let answer = requests::call(operation, &encode(arguments)?, options).map_err(text)?;
    decode(&answer)
}

pub(crate) fn encode(value: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(text)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(text)
}
