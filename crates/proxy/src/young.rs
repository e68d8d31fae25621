//! Connections that do not speak HTTP yet: before their PROXY header, or in their TLS handshake. They take places like
//! all others, but nobody holds many of them, nor for long where places are scarce.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;
use system::sockets;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long they may take where places are scarce.
const HURRIED: Duration = Duration::from_secs(3);
/// Those of one network at most: this part of all places, but a few in any case.
const SHARE: usize = 4;
const FEW: usize = 8;

/// The connections of a thread that do not speak HTTP yet, by their numbers, which rise.
#[derive(Debug, Default)]
pub(crate) struct Youth {
    all: BTreeMap<u64, One>,
    networks: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct One {
    network: Option<IpAddr>,
    since: Instant,
    task: Option<AbortHandle>,
}

impl Youth {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes one in, unless its network has as many of `places` as it may. Who says at once what it speaks comes from
    /// nowhere.
    pub(crate) fn admit(&mut self, serial: u64, from: Option<IpAddr>, places: usize) -> bool {
        let network = from.map(sockets::party);
        let admitted = network.is_none_or(|network| self.take(network, places));
        if admitted {
            self.all.insert(serial, One { network, since: Instant::now(), task: None });
        }
        admitted
    }

    /// It came from there in truth, which its PROXY header says; whether it may stay.
    pub(crate) fn comes_from(&mut self, serial: u64, address: IpAddr, places: usize) -> bool {
        let network = sockets::party(address);
        if !self.take(network, places) {
            return false;
        }
        let before = self.all.get_mut(&serial).and_then(|one| one.network.replace(network));
        before.into_iter().for_each(|before| self.leave(before));
        true
    }

    /// Notes the task that serves it.
    pub(crate) fn served_by(&mut self, serial: u64, task: AbortHandle) {
        if let Some(one) = self.all.get_mut(&serial) {
            one.task = Some(task);
        }
    }

    /// It speaks HTTP now, or is gone.
    pub(crate) fn remove(&mut self, serial: u64) {
        let one = self.all.remove(&serial);
        one.and_then(|one| one.network).into_iter().for_each(|network| self.leave(network));
    }

    /// Ends those that have had their time, where places are scarce.
    pub(crate) fn hurry(&self) {
        let late = self.all.values().take_while(|one| one.since.elapsed() >= HURRIED);
        late.filter_map(|one| one.task.as_ref()).for_each(AbortHandle::abort);
    }

    fn take(&mut self, network: IpAddr, places: usize) -> bool {
        let taken = self.networks.entry(network).or_default();
        let admitted = *taken < (places / SHARE).max(FEW);
        *taken += usize::from(admitted);
        admitted
    }

    fn leave(&mut self, network: IpAddr) {
        if let Some(taken) = self.networks.get_mut(&network) {
            *taken -= 1;
            if *taken == 0 {
                self.networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HURRIED, Youth};
    use std::net::IpAddr;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn one_network_has_its_share_and_leaves_the_rest_to_others() {
        let mut youth = Youth::default();
        let (one, other) = (address("2001:db8::1"), address("2001:db8:0:1::1"));
        let admitted = (0..100).filter(|&serial| youth.admit(serial, one, 100)).count();
        assert_eq!((admitted, youth.len()), (25, 25));
        // Another address of the same network is nobody else.
        assert!(!youth.admit(100, address("2001:db8::2"), 100));
        assert!(youth.admit(101, other, 100) && youth.admit(102, None, 100));
        youth.remove(3);
        assert!(youth.admit(103, one, 100));
        (0..200).for_each(|serial| youth.remove(serial));
        assert!(youth.len() == 0 && youth.networks.is_empty());
    }

    #[test]
    fn who_comes_through_a_proxy_counts_as_who_the_proxy_says() {
        let mut youth = Youth::default();
        let proxy = address("10.0.0.1");
        let client: IpAddr = "192.0.2.1".parse().expect("an address");
        let through = |youth: &mut Youth, serial| {
            assert!(youth.admit(serial, proxy, 100));
            let stays = youth.comes_from(serial, client, 100);
            if !stays {
                youth.remove(serial);
            }
            stays
        };
        assert_eq!((0..100).filter(|&serial| through(&mut youth, serial)).count(), 25);
        assert_eq!(youth.networks.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_had_its_time_goes_first() {
        let mut youth = Youth::default();
        let tasks = [0, 1].map(|serial| {
            assert!(youth.admit(serial, None, 1));
            tokio::spawn(std::future::pending::<()>())
        });
        youth.served_by(0, tasks[0].abort_handle());
        youth.hurry();
        tokio::time::advance(HURRIED).await;
        assert!(!tasks[0].is_finished());
        youth.admit(2, None, 1);
        youth.served_by(2, tasks[1].abort_handle());
        youth.hurry();
        let [old, new] = tasks;
        assert!(old.await.is_err_and(|error| error.is_cancelled()) && !new.is_finished());
    }
}
