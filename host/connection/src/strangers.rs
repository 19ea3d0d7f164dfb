//! Connections that have not proved a name: how many there may be, and which makes room.

use std::{collections::HashMap, hash::Hash, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The most connections without a proof. At 13,000 new ones a second, each of them has 20 ms.
const MAX: usize = 256;

/// A network or user is a crowd if it has more than one in this many of the connections: more than an eighth.
const CROWD: usize = 8;

/// All connections of a socket or gateway that have not proved a name: at most 256. For the next, the oldest gives way.
/// If the network or user with the most connections has more than an eighth of all, only its own give way: the oldest
/// of its address or process with the most. So a crowd from one place pushes out itself.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<List>);

/// Where a connection comes from, as far as the system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// An address. Its first 24 bits tell its network, or the first 48 of IPv6. Addresses of IPv6 whose first 64 bits
    /// are the same count as one.
    Address(IpAddr),
    /// A process at the other end of a Unix socket.
    Process {
        /// Its user.
        user: u32,
        /// Its number. 0 if the system does not say.
        process: u32,
    },
}

#[derive(Debug, Default)]
struct List {
    /// The number of the newest connection.
    last: u64,
    oldest_first: Vec<Stranger>,
}

#[derive(Debug)]
struct Stranger {
    number: u64,
    source: Remote,
    _place: oneshot::Sender<()>,
}

/// A network or a user, whose connections are taken for one crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Crowd {
    V4(u32),
    V6(u128),
    User(u32),
}

/// The place of a connection among the strangers, until dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    all: Arc<Strangers>,
    /// Ends when a newer connection takes the place.
    taken: oneshot::Receiver<()>,
}

impl Remote {
    /// The process at the other end of a Unix socket. All processes of which the system says nothing count as one.
    #[must_use]
    pub fn process(user: Option<u32>, process: Option<i32>) -> Self {
        let process = process.and_then(|process| u32::try_from(process).ok()).unwrap_or_default();
        Self::Process { user: user.unwrap_or(u32::MAX), process }
    }

    /// The network of an address, or the user of a process.
    fn crowd(self) -> Crowd {
        match self.canonical() {
            Self::Address(IpAddr::V4(address)) => Crowd::V4(address.to_bits() >> 8),
            Self::Address(IpAddr::V6(address)) => Crowd::V6(address.to_bits() >> 80),
            Self::Process { user, .. } => Crowd::User(user),
        }
    }

    /// The address or the process, as a number that is unique in its crowd.
    fn member(self) -> u128 {
        match self.canonical() {
            Self::Address(IpAddr::V4(address)) => address.to_bits().into(),
            Self::Address(IpAddr::V6(address)) => address.to_bits() >> 64,
            Self::Process { process, .. } => process.into(),
        }
    }

    /// The same source, with an IPv4 address that came by a socket of IPv6 as one of IPv4.
    fn canonical(self) -> Self {
        match self {
            Self::Address(address) => Self::Address(address.to_canonical()),
            process @ Self::Process { .. } => process,
        }
    }
}

impl Strangers {
    /// Takes a place, from another connection if all are taken.
    #[must_use]
    pub fn enter(self: &Arc<Self>, source: Remote) -> Place {
        let (sender, taken) = oneshot::channel();
        let mut list = self.0.lock();
        if list.oldest_first.len() >= MAX {
            list.make_room(source);
        }
        list.last += 1;
        let number = list.last;
        list.oldest_first.push(Stranger { number, source, _place: sender });
        Place { number, all: self.clone(), taken }
    }

    /// Ends the connection that gives way to one from this source, if there is any. For a newcomer that lacks room
    /// elsewhere, while there are fewer connections here than there may be.
    pub fn evict(&self, source: Remote) {
        self.0.lock().make_room(source);
    }
}

impl List {
    /// Ends the connection that gives way to one from this source.
    fn make_room(&mut self, newcomer: Remote) {
        let all: Vec<Remote> = self.oldest_first.iter().map(|stranger| stranger.source).collect();
        let Some(crowd) = largest(all.iter().copied(), Some(newcomer), Remote::crowd) else { return };
        let of_crowd = all.iter().copied().filter(|source| source.crowd() == crowd);
        if of_crowd.clone().count() * CROWD <= all.len() {
            self.oldest_first.remove(0);
            return;
        }
        let newcomer = Some(newcomer).filter(|source| source.crowd() == crowd);
        let member = largest(of_crowd, newcomer, Remote::member);
        let gives_way = |stranger: &Stranger| {
            stranger.source.crowd() == crowd && Some(stranger.source.member()) == member
        };
        if let Some(at) = self.oldest_first.iter().position(gives_way) {
            self.oldest_first.remove(at);
        }
    }
}

/// The group with the most connections, with the newcomer counted. Of several such groups it is the newcomer's own,
/// else that of the oldest.
fn largest<G: Copy + Eq + Hash>(
    all: impl Iterator<Item = Remote> + Clone,
    newcomer: Option<Remote>,
    group: impl Fn(Remote) -> G,
) -> Option<G> {
    let mut sizes = HashMap::<G, usize>::new();
    for source in all.clone().chain(newcomer) {
        *sizes.entry(group(source)).or_default() += 1;
    }
    let most = sizes.values().copied().max();
    let own = newcomer.map(&group);
    let groups = all.map(&group).filter(|group| sizes.get(group).copied() == most);
    groups.min_by_key(|group| Some(*group) != own)
}

impl Place {
    /// Waits until a newer connection takes the place.
    pub async fn taken(&mut self) {
        // Nothing is ever sent: the other end is dropped.
        let _taken = (&mut self.taken).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut list = self.all.0.lock();
        list.oldest_first.retain(|stranger| stranger.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;

    use futures_util::task::noop_waker_ref;

    use super::*;

    fn is_taken(place: &mut Place) -> bool {
        let context = &mut std::task::Context::from_waker(noop_waker_ref());
        std::pin::pin!(place.taken()).poll(context).is_ready()
    }

    fn address(text: &str) -> Remote {
        Remote::Address(text.parse().unwrap())
    }

    fn process(user: u32, process: u32) -> Remote {
        Remote::Process { user, process }
    }

    /// All places are taken from here.
    fn filled(strangers: &Arc<Strangers>, source: Remote) -> Vec<Place> {
        (0..MAX).map(|_| strangers.enter(source)).collect()
    }

    #[test]
    fn the_oldest_makes_room_and_a_place_given_up_is_free() {
        let strangers = Arc::<Strangers>::default();
        let source = process(1, 1);
        let mut places = filled(&strangers, source);
        drop(places.pop());
        let _new = strangers.enter(source);
        assert!(!is_taken(&mut places[0]));
        let _newer = strangers.enter(source);
        assert!(is_taken(&mut places[0]));
        assert!(!is_taken(&mut places[1]));
        strangers.evict(source);
        assert!(is_taken(&mut places[1]));
    }

    #[test]
    fn a_crowd_from_one_place_pushes_out_itself() {
        let mapped = "::ffff:192.0.2.1";
        for (crowd, honest) in [
            ("192.0.2.1", address("192.0.2.2")),
            ("192.0.2.1", address("198.51.100.1")),
            (mapped, address("192.0.2.2")),
            ("2001:db8::1", address("2001:db8:0:1::1")),
            ("2001:db8::1", address("192.0.2.1")),
        ]
        .map(|(crowd, honest)| (address(crowd), honest))
        .into_iter()
        .chain([(process(1, 1), process(1, 2)), (process(1, 1), process(2, 1))])
        {
            let strangers = Arc::<Strangers>::default();
            let mut crowd_places = filled(&strangers, crowd);
            let mut own = strangers.enter(honest);
            assert!(is_taken(&mut crowd_places[0]), "{crowd:?} gives way to {honest:?}");
            let mut flood = Vec::new();
            for _ in 0..MAX {
                flood.push(strangers.enter(crowd));
                strangers.evict(crowd);
            }
            assert!(!is_taken(&mut own), "{honest:?} beside {crowd:?}");
        }
    }

    #[test]
    fn many_addresses_of_a_network_and_many_processes_of_a_user_are_one_crowd() {
        let addresses: Vec<_> = (0..200).map(|last| address(&format!("192.0.2.{last}"))).collect();
        let processes: Vec<_> = (0..200).map(|number| process(1, number)).collect();
        for (crowd, honest) in [(addresses, address("198.51.100.1")), (processes, process(2, 1))] {
            let strangers = Arc::<Strangers>::default();
            let mut places: Vec<_> =
                crowd.iter().cycle().take(MAX).map(|own| strangers.enter(*own)).collect();
            let mut own = [strangers.enter(honest), strangers.enter(honest)];
            for source in crowd.iter().cycle().take(2 * MAX) {
                places.push(strangers.enter(*source));
            }
            assert!(own.iter_mut().all(|own| !is_taken(own)), "{honest:?}");
        }
    }

    #[test]
    fn where_all_are_strangers_to_each_other_the_oldest_gives_way() {
        let strangers = Arc::<Strangers>::default();
        let source = |number: usize| process(u32::try_from(number).unwrap(), 1);
        let mut places: Vec<_> = (0..MAX).map(|number| strangers.enter(source(number))).collect();
        let _new = strangers.enter(source(MAX));
        assert!(is_taken(&mut places[0]));
        assert!(!is_taken(&mut places[1]));
    }

    #[test]
    fn two_from_one_network_are_no_crowd_beside_attackers_of_many() {
        let strangers = Arc::<Strangers>::default();
        let attacker = |number: usize| address(&format!("10.{}.{}.1", number / 250, number % 250));
        let mut attackers: Vec<_> = (2..MAX).map(|number| strangers.enter(attacker(number))).collect();
        let mut honest = ["192.0.2.1", "192.0.2.2"].map(|own| strangers.enter(address(own)));
        let _new = strangers.enter(attacker(MAX));
        assert!(is_taken(&mut attackers[0]));
        assert!(honest.iter_mut().all(|own| !is_taken(own)));
    }

    #[test]
    fn networks_and_users_of_one_number_are_not_one_crowd() {
        let all = [address("192.0.2.1"), address("0:c0:2::1"), process(0x00c0_0002, 1)].map(Remote::crowd);
        assert!(all[0] != all[1] && all[1] != all[2] && all[2] != all[0], "{all:?}");
    }
}
