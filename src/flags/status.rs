//! What is written to the cluster: who leads, the status of Ingresses, Events.

use super::object::object;
use super::pflag::{duration, integer};
use crate::flags::classes::ObjectFlag;
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args};
use std::time::Duration;

/// The Lease's time where the flag says nothing of use.
const TTL: Duration = Duration::from_secs(30);
/// The status is not looked at more often than that.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(5);

/// What is written to the cluster. Nothing is, with --manifests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Status, leader, Events")]
pub(crate) struct Status {
    /// The Service whose addresses Ingresses tell in their status, as namespace/name; it has to exist.
    #[arg(long, value_name = "OBJECT", value_parser = object, default_value = "", hide_default_value = true)]
    pub(crate) publish_service: ObjectFlag,
    /// The addresses that Ingresses tell in their status: IP addresses and host names, separated by commas.
    #[arg(long, value_name = "ADDRESSES", value_parser = addresses, default_value = "", hide_default_value = true)]
    pub(crate) publish_status_address: Addresses,
    /// Without both of these: tell the internal addresses of our Pods' nodes even if they have external ones.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) report_node_internal_ip_address: bool,
    /// Write addresses into the status of Ingresses.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) update_status: bool,
    /// The last replica takes them away when it ends, from Gateways, too.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) update_status_on_shutdown: bool,
    /// Seconds after which the status of all Ingresses is looked at again; 5 at least. Changes are written at once.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = interval, allow_hyphen_values = true)]
    pub(crate) status_update_interval: Duration,
    /// Name of the Lease whose holder writes for all replicas, in the namespace of the Pod.
    #[arg(long, value_name = "NAME", default_value = "ingress-controller-leader",
        value_parser = NonEmptyStringValueParser::new())]
    pub(crate) election_id: String,
    /// How long a leader that falls silent keeps the lead, such as 30s; it stops writing after three quarters of that.
    /// 1s at least; 0 means 30s, too.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = ttl, allow_hyphen_values = true)]
    pub(crate) election_ttl: Duration,
    /// Elect no leader: the status of Ingresses is not written, and each replica writes Events.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) disable_leader_election: bool,
    /// Write no Events about Ingresses and other objects.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) disable_sync_events: bool,
}

/// Addresses, perhaps none. (Not spelled `Vec`, which clap would take for a flag that may be repeated.)
pub(crate) type Addresses = Vec<String>;

fn addresses(text: &str) -> Result<Addresses, String> {
    let all: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
    match all.iter().any(String::is_empty) {
        true if text.trim().is_empty() => Ok(Vec::new()),
        true => Err("an address between two commas is missing".to_owned()),
        false => Ok(all),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: i64 = integer(text).map_err(|_| "expected seconds, such as 60".to_owned())?;
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Ok(Duration::from_secs(seconds).max(SHORTEST_INTERVAL))
}

/// Nothing and less mean the usual one.
fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    Ok(if ttl.is_zero() { TTL } else { ttl.max(Duration::from_secs(1)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command, read, with_command};

    fn parsed(flags: &[&str]) -> Result<Status, String> {
        let arguments = std::iter::once(&"fairway").chain(flags).map(std::ffi::OsString::from);
        match read(with_command(arguments)) {
            Ok(Cli { command: Command::Run(run) }) => Ok(run.status),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_defaults_are_those_of_ingress_nginx() {
        let status = parsed(&["--v=0"]).expect("valid");
        assert_eq!(status.election_id, "ingress-controller-leader");
        assert_eq!((status.election_ttl, status.status_update_interval), (TTL, TTL * 2));
        assert!(status.update_status && status.update_status_on_shutdown);
        assert!(!status.disable_leader_election && !status.disable_sync_events);
        assert!(status.publish_service.is_none() && status.publish_status_address.is_empty());
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, ms) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("1500ms", 1500),
            ("0s", 30_000),
        ] {
            assert_eq!(ttl(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!((ttl("-5s"), ttl("0")), (Ok(TTL), Ok(TTL)));
        for text in ["", "30", "s", "30x", "1.2.3s", "-", "--1s"] {
            assert!(ttl(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_interval_has_a_least_and_addresses_are_split_at_commas() {
        let status =
            parsed(&["--status-update-interval=-1", "--publish-status-address=192.0.2.1, b.test"]);
        let status = status.expect("valid");
        assert_eq!(status.status_update_interval, SHORTEST_INTERVAL);
        assert_eq!(status.publish_status_address, ["192.0.2.1", "b.test"]);
        assert!(parsed(&["--publish-status-address=192.0.2.1,,b.test"]).is_err());
        assert!(parsed(&["--publish-service=nowhere"]).is_err());
    }
}
