//! Session tickets under a key of the operator (`ssl-session-ticket-key`), so that every replica can read them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use model::TicketKey;
use rustls::server::ProducesTickets;
use std::fmt;
use std::time::Duration;
use wire::since_epoch;

/// Bytes of what comes before the encrypted part: when the ticket ends, and the nonce.
const FRONT: usize = 8 + NONCE_LEN;

/// Makes and reads tickets.
pub(super) struct Tickets {
    key: RandomizedNonceKey,
    lifetime: Duration,
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets(…)")
    }
}

impl Tickets {
    /// Tickets under a key; none if the library refuses it. `part` keeps tickets of hosts apart that ask clients for
    /// different certificates.
    pub(super) fn new(key: &TicketKey, part: &[u8], lifetime: Duration) -> Option<Self> {
        let secret = digest(&SHA256, &[key.0.as_slice(), part].concat());
        let key = RandomizedNonceKey::new(&AES_256_GCM, secret.as_ref()).ok()?;
        Some(Self { key, lifetime })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.lifetime.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let until = since_epoch().as_secs().saturating_add(self.lifetime.as_secs()).to_be_bytes();
        let mut sealed = plain.to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(until), &mut sealed).ok()?;
        Some([&until, &nonce.as_ref()[..], &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (front, sealed) = ticket.split_at_checked(FRONT)?;
        let (until, nonce) = front.split_at(8);
        let until: [u8; 8] = until.try_into().ok()?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(until), &mut sealed)
            .ok()?;
        (since_epoch().as_secs() < u64::from_be_bytes(until)).then(|| plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::{ProducesTickets, Tickets};
    use model::TicketKey;
    use std::time::Duration;

    fn tickets(key: u8, part: &[u8], seconds: u64) -> Tickets {
        Tickets::new(&TicketKey(vec![key; 80]), part, Duration::from_secs(seconds))
            .expect("keys of this length are fine")
    }

    #[test]
    fn a_ticket_is_read_by_another_process_with_the_same_key_only() {
        let ticket = tickets(1, b"", 60).encrypt(b"session").expect("it can be sealed");
        assert_eq!(tickets(1, b"", 60).decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert_eq!(tickets(2, b"", 60).decrypt(&ticket), None);
        assert_eq!(tickets(1, b"other", 60).decrypt(&ticket), None);
    }

    #[test]
    fn a_ticket_that_was_changed_or_has_ended_is_none() {
        let fresh = tickets(1, b"", 60);
        let ticket = fresh.encrypt(b"session").expect("it can be sealed");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(fresh.decrypt(&changed), None, "byte {at}");
            assert_eq!(fresh.decrypt(&ticket[..at]), None, "cut at {at}");
        }
        let old = tickets(1, b"", 0).encrypt(b"session").expect("it can be sealed");
        assert_eq!(fresh.decrypt(&old), None);
    }
}
