//! Jobs that this process has brought to its Main, by their numbers in the stream.
//!
//! A server that is killed forgets the last deliveries and acknowledgements, and counts them anew. What this bridge remembers
//! tells a reader that it may have had the job.

use std::collections::{HashMap, VecDeque};

/// Jobs of a queue that are remembered. A server that dies brings back the latest ones.
const REMEMBERED: usize = 16_384;

/// How often the latest jobs of a queue were brought.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    times: HashMap<u64, Earlier>,
    /// The oldest first.
    order: VecDeque<u64>,
}

/// Deliveries of a job before one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// Those of this process.
    pub(crate) own: u32,
    /// At least those of all bridges.
    pub(crate) all: u32,
}

impl Brought {
    /// Counts a delivery, for the server the one with the number `delivery`. Gives those before it.
    pub(crate) fn before(&mut self, number: u64, delivery: u32) -> Earlier {
        let server = delivery.saturating_sub(1);
        let before = match self.times.get(&number) {
            Some(Earlier { own, all }) => Earlier { own: *own, all: server.max(*all) },
            None => {
                self.order.push_back(number);
                Earlier { own: 0, all: server }
            }
        };
        let after = Earlier { own: before.own.saturating_add(1), all: before.all.saturating_add(1) };
        self.times.insert(number, after);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_comes_again_as_if_for_the_first_time_is_known() {
        let mut brought = Brought::default();
        assert_eq!(brought.before(7, 1).all, 0);
        assert_eq!(brought.before(7, 1).all, 1);
        assert_eq!(brought.before(7, 1).all, 2);
        assert_eq!(brought.before(8, 1).all, 0);
    }

    #[test]
    fn what_the_server_knows_of_other_bridges_counts_too() {
        let mut brought = Brought::default();
        assert_eq!(brought.before(7, 4).all, 3);
        assert_eq!(brought.before(7, 2).all, 4);
        assert_eq!(brought.before(7, 9), Earlier { own: 2, all: 8 });
    }

    #[test]
    fn jobs_without_end_take_no_memory_without_end() {
        let mut brought = Brought::default();
        for number in 0..100_000 {
            brought.before(number, 1);
            brought.before(number, 1);
        }
        assert_eq!((brought.times.len(), brought.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(brought.before(99_999, 1).all, 2);
    }
}
