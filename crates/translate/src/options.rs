//! What the command line says about the meaning of objects.

use crate::Budget;
use crate::snippets::Ports;
use ipnet::IpNet;
use model::Outside;
use objects::ObjectKey;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The default of `--annotations-prefix`: ingress-nginx's own.
pub const ANNOTATIONS_PREFIX: &str = "nginx.ingress.kubernetes.io";

/// The default of `--gateway-controller-name`.
pub const GATEWAY_CONTROLLER: &str = "fairway/gateway-controller";

/// The default of `--gateway-target-ports`: neither node ports nor those that the system gives to clients.
pub const GATEWAY_TARGET_PORTS: RangeInclusive<u16> = 20_000..=21_999;

/// Which Service there is for each Gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayServices {
    /// None.
    #[default]
    None,
    /// A name for its address, where it has one of its own.
    Headless,
    /// A load balancer, by which it is reached.
    LoadBalancer,
}

/// The sockets that listeners of Gateways may have, by the files that the process may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// How many there may be, half of them of one namespace.
    pub most: u64,
    /// Threads of traffic: each has a socket of its own for each port of HTTP or TLS.
    pub threads: u64,
    /// Whether the ConfigMap leaves the number of threads as it is.
    pub fixed_threads: bool,
    /// Addresses that flags name; none leaves it to the ConfigMap.
    pub addresses: u64,
}

/// What the command line says about the meaning of objects; the defaults are those of ingress-nginx
/// (compat/flags.csv).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--annotations-prefix`.
    pub annotations_prefix: String,
    /// `--ingress-class`: value of the annotation `kubernetes.io/ingress.class`.
    pub ingress_class: String,
    /// `--controller-class`: `spec.controller` of accepted IngressClasses.
    pub controller_class: String,
    /// `--ingress-class-by-name`: the IngressClass called as `ingress_class` is accepted, too.
    pub ingress_class_by_name: bool,
    /// `--watch-ingress-without-class`.
    pub watch_ingress_without_class: bool,
    /// `--disable-catch-all`: Ingresses with `spec.defaultBackend` are left out.
    pub disable_catch_all: bool,
    /// `--disable-svc-external-name`: Services of type ExternalName have no endpoints.
    pub disable_external_names: bool,
    /// `--gateway-controller-name`: `spec.controllerName` of accepted GatewayClasses.
    pub gateway_controller: String,
    /// `--gateway-addresses`: each Gateway has an address of these; none: all share those of the process.
    pub gateway_addresses: Vec<IpNet>,
    /// `--gateway-services`: which Service there is for each Gateway.
    pub gateway_services: GatewayServices,
    /// `--gateway-target-ports`: what the Services of Gateways with load balancers lead to.
    pub gateway_target_ports: RangeInclusive<u16>,
    /// What listeners of Gateways may open; none is no bound.
    pub sockets: Option<Sockets>,
    /// `--watch-namespace`: Ingresses of other namespaces are neither served nor reviewed.
    pub watch_namespace: Option<String>,
    /// The zone that this process is in, with `--enable-topology-aware-routing`: endpoints that are meant for it go
    /// first.
    pub zone: Option<String>,
    /// `--deep-inspect`: Ingresses whose hosts, paths or Secret names look like an attack on nginx are left out.
    pub deep_inspect: bool,
    /// `--enable-annotation-validation`: off, a bad value never takes an Ingress out.
    pub validate_annotations: bool,
    /// `--configmap`.
    pub config_map: Option<ObjectKey>,
    /// `--default-ssl-certificate`.
    pub default_ssl_certificate: Option<ObjectKey>,
    /// `--default-backend-service`.
    pub default_backend_service: Option<ObjectKey>,
    /// `--tcp-services-configmap`.
    pub tcp_services: Option<ObjectKey>,
    /// `--udp-services-configmap`.
    pub udp_services: Option<ObjectKey>,
    /// Ports that are taken already, or were by ingress-nginx: no TCP or UDP service has them.
    pub reserved_ports: BTreeSet<u16>,
    /// Ports of TCP that the process has open for itself and shares with nobody: no Gateway has them at an address of
    /// its own, which would be in the way of all addresses. Those of HTTP and HTTPS are shared.
    pub process_ports: BTreeSet<u16>,
    /// `--http-port` and `--https-port`: a server of `http-snippet` may be there by its name, and listeners of Gateways
    /// may name them besides 80 and 443.
    pub http_ports: [u16; 2],
    /// `--enable-ssl-passthrough`: the annotation `ssl-passthrough` counts.
    pub passthrough: bool,
    /// `--allow-target-networks`: where what objects name may lead.
    pub outside: Outside,
    /// `--namespace-budget`: what the Ingresses of one namespace may take together.
    pub namespace_budget: Budget,
    /// Whether the databases about clients' addresses are known to be in `--geoip-directory`: what hangs on them is as
    /// it was.
    pub has_databases: bool,
    /// Whether a volume is mounted where nginx has its logs: their default paths are files there, and no standard
    /// streams.
    pub log_folder: bool,
    /// `--engine=nginx`: snippets and ModSecurity are for somebody who understands them.
    pub raw: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            annotations_prefix: ANNOTATIONS_PREFIX.to_owned(),
            ingress_class: "nginx".to_owned(),
            controller_class: "k8s.io/ingress-nginx".to_owned(),
            ingress_class_by_name: false,
            watch_ingress_without_class: false,
            disable_catch_all: false,
            disable_external_names: false,
            gateway_controller: GATEWAY_CONTROLLER.to_owned(),
            gateway_addresses: Vec::new(),
            gateway_services: GatewayServices::None,
            gateway_target_ports: GATEWAY_TARGET_PORTS,
            sockets: None,
            zone: None,
            watch_namespace: None,
            deep_inspect: true,
            validate_annotations: true,
            config_map: None,
            default_ssl_certificate: None,
            default_backend_service: None,
            tcp_services: None,
            udp_services: None,
            reserved_ports: BTreeSet::new(),
            process_ports: BTreeSet::new(),
            http_ports: [80, 443],
            passthrough: false,
            outside: Outside::default(),
            namespace_budget: Budget::default(),
            has_databases: false,
            log_folder: false,
            raw: false,
        }
    }
}

impl Options {
    /// Whether all Gateways have the addresses and ports of the process.
    pub(crate) fn gateways_share(&self) -> bool {
        self.gateway_addresses.is_empty() && self.gateway_services != GatewayServices::LoadBalancer
    }

    /// Whether a port of the process is one that Services of Gateways lead to.
    pub(crate) fn is_target(&self, port: u16) -> bool {
        self.gateway_services == GatewayServices::LoadBalancer
            && self.gateway_target_ports.contains(&port)
    }

    /// The ports that servers of `http-snippet` meet.
    pub(crate) fn ports_of_snippets(&self) -> Ports {
        let closed = self.reserved_ports.iter().filter(|port| !self.http_ports.contains(port));
        Ports { closed: closed.copied().collect(), of_hosts: self.http_ports }
    }
}
