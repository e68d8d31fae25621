//! What is written to the cluster: the Lease, the status of Ingresses, Events. Started together, ended in order.

use crate::flags::{Classes, Source, Status};
use crate::own_pod::{self, NAME, NAMESPACE};
use crate::replicas;
use anyhow::{Context, Result, bail, ensure};
use console::AskReplicas;
use controller::events::{EventOptions, Events, Recorder, TellOptions};
use controller::lease::{Election, ElectionOptions, Leadership};
use controller::status::{AddressSource, StatusOptions, StatusWriter};
use controller::{Controller, OwnPod};
use engine::Engine;
use kubernetes::ClientOptions;
use objects::{ObjectKey, Snapshot};
use translate::{GatewayServices, Options};

/// This replica, and the way to the API server.
pub(crate) struct Replica {
    pod: OwnPod,
    client: ClientOptions,
    /// Whether it sees the objects of all namespaces.
    sees_all: bool,
    /// Where every replica has its admin server.
    admin_port: u16,
}

/// What writes; nothing where nobody may.
#[derive(Default)]
pub(crate) struct ClusterWrites {
    election: Option<Election>,
    status: Option<StatusWriter>,
    events: Option<Events>,
    /// Who the replicas are, whom to ask about them, and where they have their admin servers.
    replicas: Option<(OwnPod, kubernetes::Client, u16)>,
}

impl Replica {
    /// Who we are, given the way to the API server, whether all namespaces are seen, and the port of the admin server;
    /// none outside of a cluster, or of a Pod, where nothing is written. What flags name has to be there.
    pub(crate) async fn find(
        (cluster, admin_port): (Option<(ClientOptions, bool)>, u16),
        flags: &Status,
        options: &Options,
        snapshot: &Snapshot,
    ) -> Result<Option<Self>> {
        let Some((client, sees_all)) = cluster else { return Ok(None) };
        check(flags, options, snapshot)?;
        let Some((namespace, name)) = own_pod::find() else {
            ensure!(
                std::env::var_os("KUBERNETES_SERVICE_HOST").is_none(),
                "{NAME} and {NAMESPACE} are not set: let the Pod have them as environment variables, \
                 from metadata.name and metadata.namespace"
            );
            tracing::warn!(
                "without {NAME} and {NAMESPACE} in the environment, neither the status of Ingresses nor Events \
                 are written"
            );
            return Ok(None);
        };
        let reader = kubernetes::client(&client).await?;
        let pod = OwnPod::read(&reader, &namespace, &name).await.map_err(|reason| {
            anyhow::anyhow!(
                "cannot read Pod {namespace}/{name}, which {NAMESPACE} and {NAME} say this is: {reason}"
            )
        })?;
        Ok(Some(Self { pod, client, sees_all, admin_port }))
    }
}

/// What flags name has to be there at start.
fn check(status: &Status, options: &Options, snapshot: &Snapshot) -> Result<()> {
    let exists = |flag: &str, key: &Option<ObjectKey>| {
        let missing = key.as_ref().filter(|key| !snapshot.services.contains_key(*key));
        match missing {
            None => Ok(()),
            Some(ObjectKey { namespace, name }) => bail!(
                "there is no Service {namespace}/{name}; create it, or name another with --{flag}"
            ),
        }
    };
    exists("default-backend-service", &options.default_backend_service)?;
    exists("publish-service", &status.publish_service)
}

/// Flags that do not go together.
pub(crate) fn check_flags(status: &Status, classes: &Classes, source: &Source) -> Result<()> {
    if classes.gateway_services == GatewayServices::LoadBalancer {
        ensure!(
            source.manifests.is_empty(),
            "--gateway-services=load-balancer needs a cluster, in which Services can be made: take out --manifests"
        );
        ensure!(
            status.publish_service.is_some(),
            "--gateway-services=load-balancer takes --publish-service: the endpoints of that Service are the replicas"
        );
        ensure!(
            classes.gateway_addresses.is_empty(),
            "--gateway-services=load-balancer and --gateway-addresses exclude each other; give one of them"
        );
    }
    ensure!(
        classes.gateway_services != GatewayServices::Headless
            || !classes.gateway_addresses.is_empty(),
        "--gateway-services=headless takes --gateway-addresses: there is no other address to have a name for"
    );
    ensure!(
        status.publish_service.is_none() || status.publish_status_address.is_empty(),
        "--publish-service and --publish-status-address exclude each other; give one of them"
    );
    Ok(())
}

impl ClusterWrites {
    /// Starts what the flags ask for.
    pub(crate) async fn start<E: Engine>(
        replica: Option<Replica>,
        flags: Status,
        options: &Options,
        controller: &Controller<E>,
    ) -> Result<Self> {
        let Some(Replica { pod, client, sees_all, admin_port }) = replica else {
            return Ok(Self::default());
        };
        let election = if flags.disable_leader_election {
            None
        } else {
            Some(Election::start(ElectionOptions {
                client: kubernetes::client(&client).await?,
                namespace: pod.namespace.clone(),
                name: flags.election_id.clone(),
                identity: pod.name.clone(),
                ttl: flags.election_ttl,
            }))
        };
        let leadership = election.as_ref().map(Election::leadership);
        let replicas = (pod.clone(), kubernetes::client(&client).await?, admin_port);
        let named = [&options.config_map, &options.tcp_services, &options.udp_services];
        let tell = TellOptions {
            objects: !flags.disable_sync_events,
            config_maps: named.into_iter().flatten().cloned().collect(),
        };
        // Connections of their own: what is slow for one of them does not hold up the others.
        let own =
            EventOptions { client: kubernetes::client(&client).await?, pod: pod.clone(), tell };
        let speakers = leadership.clone().unwrap_or_else(Leadership::always);
        let events = Events::start(own, &speakers, controller.known());
        let mut status = None;
        match leadership.filter(|_| flags.update_status) {
            Some(leadership) => {
                let client =
                    kubernetes::client(&client).await.context("for the status of Ingresses")?;
                let own = status_options(flags, (pod, admin_port), client, (options, sees_all));
                let recorder: Recorder = events.recorder();
                status = Some(StatusWriter::start(own, leadership, controller.known(), recorder));
            }
            None => tracing::info!("the status of Ingresses is not written: flags say so"),
        }
        Ok(Self { election, status, events: Some(events), replicas: Some(replicas) })
    }

    /// Whether this replica leads: nobody does without an election.
    pub(crate) fn leadership(&self) -> Leadership {
        self.election.as_ref().map_or_else(Leadership::never, Election::leadership)
    }

    /// What asks for the replicas.
    pub(crate) fn asking_replicas(&self) -> Option<AskReplicas> {
        let (pod, client, port) = self.replicas.clone()?;
        let leadership = self.election.as_ref().map(Election::leadership);
        Some(replicas::asking(pod, client, leadership, port))
    }

    /// Ends everything, the lead last: until then it is ours to write.
    pub(crate) async fn stop(self) {
        if let Some(status) = self.status {
            status.stop().await;
        }
        if let Some(events) = self.events {
            events.stop().await;
        }
        if let Some(election) = self.election {
            election.release().await;
        }
    }
}

fn status_options(
    flags: Status,
    (pod, admin_port): (OwnPod, u16),
    client: kubernetes::Client,
    (options, sees_all): (&Options, bool),
) -> StatusOptions {
    let replicas = flags.publish_service.clone();
    let source = match (flags.publish_service, flags.publish_status_address) {
        (Some(service), _) => AddressSource::Service(service),
        (None, addresses) if !addresses.is_empty() => AddressSource::Fixed(addresses),
        (None, _) => AddressSource::Nodes { internal: flags.report_node_internal_ip_address },
    };
    let interval = flags.status_update_interval;
    let clear_at_end = flags.update_status_on_shutdown;
    StatusOptions {
        client,
        source,
        pod,
        admin_port,
        interval,
        gateway_controller: options.gateway_controller.as_str().into(),
        sees_all,
        makes_services: options.gateway_services != GatewayServices::None,
        replicas,
        clear_at_end,
    }
}
