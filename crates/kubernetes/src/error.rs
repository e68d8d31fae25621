//! What can keep a feed from starting, each in one line that says how to mend it.

use std::io;
use std::path::PathBuf;

/// What can keep a feed from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file of manifests cannot be read.
    #[error("cannot read the manifests in {}: {source}; create it, make it readable, or name another", path.display())]
    Manifests {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The kernel watches no more folders for us.
    #[error("cannot watch {}: too many folders are watched already; raise the sysctl fs.inotify.max_user_watches", path.display())]
    TooManyWatches {
        /// The folder.
        path: PathBuf,
    },
    /// The kernel gives us no inotify instance.
    #[error("cannot follow changes of files: {0}; raise the sysctl fs.inotify.max_user_instances")]
    Inotify(#[source] io::Error),
    /// No folder was named.
    #[error("no folder of manifests was named; name at least one")]
    NoManifests,
    /// A kubeconfig is missing or wrong.
    #[error(
        "cannot use the kubeconfig {path}: {reason}; name a valid one with --kubeconfig or KUBECONFIG"
    )]
    Kubeconfig {
        /// The file or files.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A kubeconfig has no such context.
    #[error(
        "the kubeconfig {path} has no context {context}; give --context one that it has: {known}"
    )]
    NoContext {
        /// The file or files.
        path: String,
        /// The context that was asked for.
        context: String,
        /// Those that there are.
        known: String,
    },
    /// A context was named, and no kubeconfig.
    #[error(
        "--context names a context of a kubeconfig, and there is none; name one with --kubeconfig or KUBECONFIG"
    )]
    NoContexts,
    /// Nothing says where the API server is.
    #[error(
        "found no cluster: this is no Pod, and there is neither --kubeconfig nor KUBECONFIG nor --apiserver-host; \
         give one of them, or --manifests with a folder"
    )]
    NoCluster,
    /// The service account of the Pod cannot be used.
    #[error(
        "cannot use the service account of this Pod: {reason}; let the Pod have one (automountServiceAccountToken: true)"
    )]
    InCluster {
        /// Why not.
        reason: String,
    },
    /// The URL of the API server is wrong.
    #[error("cannot use --apiserver-host {url}: {reason}; write it as https://host:port")]
    ServerUrl {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The file with the certificate authorities is wrong.
    #[error("cannot use the certificate authority {}: {reason}; name a PEM file with --certificate-authority", path.display())]
    CertificateAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No client can be made of what was given.
    #[error(
        "cannot talk to the API server {server}: {reason}; check certificates and credentials in the kubeconfig"
    )]
    Client {
        /// URL of the API server.
        server: String,
        /// Why not.
        reason: String,
    },
    /// The API server does not answer.
    #[error("cannot reach the API server: {reason}; check its address, and that it runs")]
    Unreachable {
        /// Why not.
        reason: String,
    },
    /// The API server does not know us.
    #[error(
        "the API server refuses our credentials: {reason}; check the user in the kubeconfig or the service account"
    )]
    Unauthorized {
        /// What it answered.
        reason: String,
    },
    /// The API server has no discovery.k8s.io/v1.
    #[error("the API server is Kubernetes {version}; it takes 1.21 or later")]
    TooOld {
        /// What it says it is.
        version: String,
    },
    /// The watched namespace is missing.
    #[error("there is no namespace {namespace}; create it, or name another with --watch-namespace")]
    NoNamespace {
        /// Its name.
        namespace: String,
    },
    /// Some objects cannot be listed.
    #[error(
        "cannot list {missing}; allow {rights} of them in the ClusterRole, or where a flag names one object in the Role of its namespace, and check the API server"
    )]
    Incomplete {
        /// What is missing, and why.
        missing: String,
        /// What has to be allowed.
        rights: &'static str,
    },
    /// A Pod cannot be asked.
    #[error(
        "cannot ask Pod {pod} through the API server: {reason}; check its name and the right to get pods/proxy"
    )]
    Pod {
        /// Its namespace and name.
        pod: String,
        /// Why not.
        reason: String,
    },
    /// A list was refused as wrong: the selector is.
    #[error(
        "the API server refuses to list {what}: {reason}; check --watch-namespace-selector and --watch-namespace"
    )]
    Refused {
        /// What was to be listed.
        what: String,
        /// What it answered.
        reason: String,
    },
}
