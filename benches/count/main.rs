//! Counts what Weir's hot path takes in instructions, which do not depend on how busy the machine is, and tells
//! what grew since they were last kept.
//!
//! `cargo xtask instructions` builds this program and the extensions that it runs, and passes its arguments on.
//! It counts by running itself under valgrind's `callgrind`.

#![expect(clippy::print_stdout, reason = "the numbers are for whoever runs it")]

mod callgrind;
mod clock;
mod kept;
mod work;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::{
    kept::Kept,
    work::{Artifacts, Case},
};

/// Counts instructions.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Count every case, and compare with what is kept.
    Count {
        /// Where the extensions are.
        #[arg(long, value_name = "DIRECTORY")]
        guests: PathBuf,
        /// The numbers that are kept.
        #[arg(long, value_name = "FILE")]
        kept: PathBuf,
        /// Where the profile of each case goes, for `callgrind_annotate`.
        #[arg(long, value_name = "DIRECTORY")]
        profiles: PathBuf,
        /// Keep the new numbers.
        #[arg(long)]
        bless: bool,
    },
    /// Do the work of a case so many times, and nothing else: what is counted.
    Work {
        #[arg(value_enum)]
        case: Case,
        operations: u32,
        #[arg(long, value_name = "DIRECTORY")]
        artifacts: PathBuf,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Work { case, operations, artifacts } => {
            work::work(case, operations, &Artifacts::in_dir(artifacts))
        }
        Task::Count { guests, kept, profiles, bless } => {
            let before = Kept::read(&kept)?;
            let now = callgrind::count(&guests, &profiles)?;
            println!("{}", before.table(&now));
            if bless {
                return now.write(&kept);
            }
            if let Some(fell) = before.judge(&now)? {
                eprintln!("{fell}");
            }
            Ok(())
        }
    }
}
