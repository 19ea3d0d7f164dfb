//! Counts the instructions of Weir's hot path, independently of other load, and reports growth over the kept
//! numbers.
//!
//! `cargo xtask instructions` builds this program and its extensions, and passes its arguments on. It runs
//! itself under valgrind's `callgrind`.

#![expect(clippy::print_stdout, reason = "the numbers are for the user")]

mod callgrind;
mod kept;
mod work;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

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
    /// Count every case, and compare with the kept numbers.
    Count {
        /// The directory of the artifacts.
        #[arg(long, value_name = "DIRECTORY")]
        artifacts: PathBuf,
        /// The file of the kept numbers.
        #[arg(long, value_name = "FILE")]
        kept: PathBuf,
        /// The directory for the profile of each case, for `callgrind_annotate`.
        #[arg(long, value_name = "DIRECTORY")]
        profiles: PathBuf,
        /// Keep the new numbers.
        #[arg(long)]
        bless: bool,
    },
    /// Do the work of every case this many times, and count nothing.
    WorkAll {
        operations: u32,
        /// The directory of the artifacts.
        #[arg(long, value_name = "DIRECTORY")]
        artifacts: PathBuf,
    },
    /// Do the work of a case this many times: the counted part.
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
        Task::WorkAll { operations, artifacts } => {
            let artifacts = Artifacts::in_dir(artifacts);
            let mut cases = Case::value_variants().iter();
            cases.try_for_each(|case| work::work(*case, operations / case.weight(), &artifacts))
        }
        Task::Count { artifacts, kept, profiles, bless } => {
            let before = Kept::read(&kept)?;
            let now = callgrind::count(&Artifacts::in_dir(artifacts), &profiles)?;
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
