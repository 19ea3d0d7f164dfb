//! The jobs: numbered, so that each is seen to reach exactly one reader.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Jobs, Round};

/// A job with this number and size. The `last` one of its writer says so.
pub(super) fn job((number, last): (u32, bool), bytes: u32) -> Vec<u8> {
    let mut job = [number.to_le_bytes(), u32::from(last).to_le_bytes()].concat();
    job.resize(usize::try_from(bytes).unwrap_or_default().max(job.len()), 0);
    job
}

/// The jobs of this writer, and whether each is its last.
pub(super) fn share(index: u32, writers: u32, jobs: u32) -> impl Iterator<Item = (u32, bool)> {
    let numbers = (0..jobs.saturating_sub(index).div_ceil(writers)).map(move |round| index + round * writers);
    numbers.map(move |number| (number, jobs - number <= writers))
}

/// The jobs of one reader: a bit for each.
#[derive(Debug)]
pub(super) struct Came {
    bits: Vec<u8>,
    bytes: u32,
}

impl Came {
    pub(super) fn none_of(jobs: Jobs) -> Result<Self> {
        Ok(Self { bits: vec![0; jobs.count.div_ceil(8).try_into()?], bytes: jobs.bytes })
    }

    pub(super) fn from_bits(bits: &[u8], jobs: Jobs) -> Self {
        Self { bits: bits.to_vec(), bytes: jobs.bytes }
    }

    /// Records a job. Returns whether it is the last of its writer.
    pub(super) fn note(&mut self, job: &[u8]) -> Result<bool> {
        ensure!(u32::try_from(job.len()) == Ok(self.bytes), "a job has {} bytes", job.len());
        let number = |place: usize| job.as_chunks().0.get(place).map(|bytes| u32::from_le_bytes(*bytes));
        let bit = usize::try_from(number(0).context("a job has no number")?)?;
        let byte = self.bits.get_mut(bit / 8).context("a job of no number")?;
        ensure!(*byte & (1 << (bit % 8)) == 0, "job {bit} came again");
        *byte |= 1 << (bit % 8);
        Ok(number(1) == Some(1))
    }
}

/// The round of what came to the readers. Fails unless every job has reached exactly one of them.
pub(super) fn round((time, cpu): (Duration, Duration), came: &[Came], jobs: Jobs) -> Result<Round> {
    let mut all = Came::none_of(jobs)?.bits;
    for Came { bits, .. } in came {
        ensure!(bits.len() == all.len(), "a reader tells of other jobs");
        for (all, byte) in all.iter_mut().zip(bits) {
            ensure!(*all & byte == 0, "a job came to two readers");
            *all |= byte;
        }
    }
    let count = |bits: &[u8]| bits.iter().map(|byte| byte.count_ones()).sum::<u32>();
    ensure!(count(&all) == jobs.count, "{} of {} jobs came", count(&all), jobs.count);
    Ok(Round { time, cpu, shares: came.iter().map(|came| count(&came.bits)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: Jobs = Jobs { count: 9, bytes: 64, at_once: 1 };

    #[test]
    fn writers_share_all_jobs_and_each_knows_its_last() {
        let mut all: Vec<_> = (0..3).flat_map(|index| share(index, 3, 7)).collect();
        all.sort_unstable();
        let last = |number| matches!(number, 4..=6);
        assert_eq!(all, (0..7).map(|number| (number, last(number))).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_that_came_twice_or_never_is_found() {
        let came = |numbers: &[u32]| {
            let mut came = Came::none_of(JOBS).unwrap();
            numbers.iter().for_each(|number| assert!(!came.note(&job((*number, false), 64)).unwrap()));
            came
        };
        let nothing = (Duration::ZERO, Duration::ZERO);
        let told = |readers: &[Came]| round(nothing, readers, JOBS).map(|round| round.shares);
        let (few, rest) = ([8, 0], [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(told(&[came(&few), came(&rest)]).unwrap(), [2, 7]);
        assert_eq!(told(&[came(&rest)]).unwrap_err().to_string(), "7 of 9 jobs came");
        let again = told(&[came(&few), came(&rest), came(&[8])]).unwrap_err();
        assert_eq!(again.to_string(), "a job came to two readers");
        assert!(came(&few).note(&job((8, true), 64)).is_err());
        assert!(came(&few).note(&job((1, true), 65)).is_err());
    }
}
