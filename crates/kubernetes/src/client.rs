//! The way to the API server: kubeconfig, a plain URL, or the service account of the Pod.

use crate::Error;
use crate::newest::newest;
use http::{HeaderValue, Uri, header::USER_AGENT};
use kube::client::{AuthError, ClientBuilder};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::error::Error as StdError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tower::util::MapRequestLayer;

const NAME: &str = concat!("fairway/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(30);
/// How long a watch of a cluster lasts. A connection that is dead without a word, since a machine or a balancer has
/// forgotten it, is given up 5 s later, and so is one that is asked for a watch then: there is no ping in HTTP/1.1.
pub const WATCH: Duration = Duration::from_secs(40);
/// How long a connection may be silent while something is asked over it; watches are ended by the server before.
const READ: Duration = WATCH.saturating_add(Duration::from_secs(5));

/// Where the API server is, and who we are to it. Without anything the service account of the Pod is used.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// A kubeconfig file; `KUBECONFIG` from the environment if there is none.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; its current one if there is none.
    pub context: Option<String>,
    /// URL of the API server, for one that needs no credentials; with a kubeconfig, it replaces the server there.
    pub apiserver_host: Option<String>,
    /// File with the certificates of the authorities that sign the API server's certificate.
    pub certificate_authority: Option<PathBuf>,
    /// How long a connection may be silent while something is asked over it; 5 s longer than a [`WATCH`] if nothing is
    /// said.
    pub read: Option<Duration>,
}

/// A client for the API server. It does not connect yet.
pub async fn client(options: &ClientOptions) -> Result<kube::Client, Error> {
    let mut config = configuration(options, std::env::var_os("KUBECONFIG")).await?;
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(WRITE);
    config.read_timeout = options.read.or(Some(READ));
    config.reset_reader_on_write = true;
    // Whoever asks hears of a 429 or 503, and has a pause of its own: the crate would wait up to 1000 s without a word,
    // and as long as a Retry-After says.
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(NAME)));
    let server = config.cluster_url.to_string();
    let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
    let builder = ClientBuilder::try_from(config)
        .map_err(|error| Error::Client { server, reason: refused(&error, plugin) })?;
    Ok(builder.with_layer(&MapRequestLayer::new(newest)).build())
}

/// Why there is no client. The crate does not say which plugin of the kubeconfig cannot be started.
fn refused(error: &kube::Error, plugin: Option<String>) -> String {
    match (error, plugin) {
        (kube::Error::Auth(AuthError::AuthExecStart(_)), Some(plugin)) => format!(
            "its user has the exec plugin {plugin}, which cannot be started: {}; install it, or put it on the PATH",
            deepest(error)
        ),
        _ => deepest(error),
    }
}

/// URL of the API server, for messages.
pub async fn server(options: &ClientOptions) -> Result<String, Error> {
    let config = configuration(options, std::env::var_os("KUBECONFIG")).await?;
    Ok(config.cluster_url.to_string())
}

async fn configuration(
    options: &ClientOptions,
    environment: Option<OsString>,
) -> Result<Config, Error> {
    let host = options.apiserver_host.as_deref().filter(|host| !host.is_empty());
    let host = host.map(server_url).transpose()?;
    let environment = environment.filter(|paths| !paths.is_empty());
    let context = options.context.as_deref();
    let mut config = match (&options.kubeconfig, environment, &host) {
        (Some(path), _, _) => from_files(std::slice::from_ref(path), context, false).await?,
        (None, Some(paths), _) if host.is_none() || context.is_some() => {
            let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
            from_files(&paths, context, true).await?
        }
        (None, _, _) if context.is_some() => return Err(Error::NoContexts),
        (None, _, Some(host)) => Config::new(host.clone()),
        (None, _, None) => in_cluster()?,
    };
    if let Some(host) = host {
        config.cluster_url = host;
    }
    if let Some(path) = &options.certificate_authority {
        readable_certificates(path)?;
        config.root_cert_file = Some(path.clone());
    }
    Ok(config)
}

/// What files say together. Of a list in the environment some may be missing, as for kubectl.
async fn from_files(paths: &[PathBuf], context: Option<&str>, some: bool) -> Result<Config, Error> {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let unusable =
        |error: &dyn StdError| Error::Kubeconfig { path: shown.join(":"), reason: deepest(error) };
    let mut merged: Option<Kubeconfig> = None;
    let is_named = |path: &&PathBuf| !path.as_os_str().is_empty();
    let is_any_there = some && paths.iter().filter(is_named).any(|path| path.exists());
    let is_read = |path: &&PathBuf| is_named(path) && (!is_any_there || path.exists());
    for path in paths.iter().filter(is_read) {
        let next = Kubeconfig::read_from(path).map_err(|error| unusable(&error))?;
        merged = Some(match merged {
            None => next,
            Some(before) => before.merge(next).map_err(|error| unusable(&error))?,
        });
    }
    let merged = merged.unwrap_or_default();
    if let Some(context) = context {
        let known: Vec<&str> = merged.contexts.iter().map(|one| one.name.as_str()).collect();
        if !known.contains(&context) {
            return Err(Error::NoContext {
                path: shown.join(":"),
                context: context.to_owned(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            });
        }
    }
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(merged, &options).await.map_err(|error| unusable(&error))
}

fn in_cluster() -> Result<Config, Error> {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        return Err(Error::NoCluster);
    }
    Config::incluster().map_err(|error| Error::InCluster { reason: deepest(&error) })
}

fn server_url(text: &str) -> Result<Uri, Error> {
    let wrong = |reason: &str| Error::ServerUrl { url: text.to_owned(), reason: reason.to_owned() };
    let uri: Uri = text.parse().map_err(|_| wrong("it is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("it does not begin with http:// or https://"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(Error::ServerUrl {
            url: format!("{}://…", uri.scheme_str().unwrap_or_default()),
            reason: "it holds credentials, which belong into a kubeconfig".to_owned(),
        });
    }
    Ok(uri)
}

fn readable_certificates(path: &Path) -> Result<(), Error> {
    let wrong = |reason: String| Error::CertificateAuthority { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    if text.contains("-----BEGIN CERTIFICATE-----") {
        Ok(())
    } else {
        Err(wrong("it holds no certificate in PEM form".to_owned()))
    }
}

/// What is at the bottom of an error: `Connection refused`, not the three layers above it.
pub fn deepest(error: &dyn StdError) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    // rustls names a page about what it says.
    let said = line.split_once(": https://docs.rs/").map_or(line, |(said, _)| said);
    said.trim_end_matches('.').to_owned()
}

/// The client's word for an answer that is no Status: of a proxy in front of the API server, or of one that is busy.
const NO_STATUS: &str = "Failed to parse error data";

/// The clock's word for a time-out, and what it means here.
const SILENCE: &str = "deadline has elapsed";
const SILENT: &str = "no answer in time; see that its address is right, and that no NetworkPolicy or firewall is in between";

/// What the API server answered, or why it did not.
pub(crate) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            let message = status.message.lines().next().unwrap_or_default();
            let code = http::StatusCode::from_u16(status.code).ok();
            let title =
                match (status.reason.as_str(), code.and_then(|code| code.canonical_reason())) {
                    (NO_STATUS, Some(title)) => title,
                    (told, _) => told,
                };
            let colon = if message.is_empty() { "" } else { ": " };
            format!("{} {title}{colon}{message}", status.code)
        }
        other => match deepest(other) {
            silence if silence == SILENCE => SILENT.to_owned(),
            told => told,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn an_answer_that_is_no_status_is_named_by_its_code() {
        let told = |text: &str, code| {
            let status = Status::failure(text, NO_STATUS).with_code(code);
            reason(&kube::Error::Api(status.boxed()))
        };
        assert_eq!(told("", 503), "503 Service Unavailable");
        assert_eq!(told("slow down", 429), "429 Too Many Requests: slow down");
        let forbidden = Status::failure("no rights", "Forbidden").with_code(403);
        assert_eq!(reason(&kube::Error::Api(forbidden.boxed())), "403 Forbidden: no rights");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_told_with_what_to_look_at() {
        let never = std::future::pending::<()>();
        let elapsed = tokio::time::timeout(CONNECT, never).await.expect_err("it never comes");
        assert_eq!(elapsed.to_string(), SILENCE, "the words of the library");
        assert_eq!(reason(&kube::Error::Service(Box::new(elapsed))), SILENT);
    }

    async fn of(options: ClientOptions, environment: Option<&str>) -> Result<Config, String> {
        let environment = environment.map(OsString::from);
        configuration(&options, environment).await.map_err(|error| error.to_string())
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("writes");
        file
    }

    fn kubeconfig(server: &str) -> tempfile::NamedTempFile {
        file(&format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        ))
    }

    #[tokio::test]
    async fn the_flag_counts_before_the_environment_and_a_url_replaces_the_server() {
        let (flag, variable) =
            (kubeconfig("https://flag:6443"), kubeconfig("https://variable:6443"));
        let variable = variable.path().to_str();
        let mut options =
            ClientOptions { kubeconfig: Some(flag.path().to_owned()), ..ClientOptions::default() };
        let config = of(options.clone(), variable).await.unwrap();
        assert_eq!(config.cluster_url, "https://flag:6443");
        options.apiserver_host = Some("http://127.0.0.1:8080".to_owned());
        let config = of(options.clone(), variable).await.unwrap();
        assert_eq!(config.cluster_url, "http://127.0.0.1:8080");
        options = ClientOptions::default();
        let config = of(options, variable).await.unwrap();
        assert_eq!(config.cluster_url, "https://variable:6443");
    }

    #[tokio::test]
    async fn missing_files_of_the_environment_are_passed_over_unless_all_are() {
        let there = kubeconfig("https://there:6443");
        let there = there.path().to_str().unwrap();
        for paths in [format!("/nonexistent/a:{there}"), format!("{there}::/nonexistent/a")] {
            let config = of(ClientOptions::default(), Some(&paths)).await.unwrap();
            assert_eq!(config.cluster_url, "https://there:6443", "{paths}");
        }
        let none = Some("/nonexistent/a:/nonexistent/b");
        let error = of(ClientOptions::default(), none).await.unwrap_err();
        assert!(error.contains("/nonexistent/a:/nonexistent/b: No such file"), "{error}");
        // What a flag names has to be there.
        let kubeconfig = Some(PathBuf::from("/nonexistent/a"));
        let options = ClientOptions { kubeconfig, ..ClientOptions::default() };
        assert!(of(options, Some(there)).await.is_err());
    }

    #[tokio::test]
    async fn a_plugin_that_is_not_installed_is_named() {
        let with_plugin = file(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{name: c, cluster: {server: 'https://host:6443'}}]\n\
             contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {exec: {apiVersion: \
             client.authentication.k8s.io/v1, command: not-installed-authenticator}}}]\n",
        );
        let kubeconfig = Some(with_plugin.path().to_owned());
        let error = client(&ClientOptions { kubeconfig, ..Default::default() }).await.err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.contains(
                "exec plugin not-installed-authenticator, which cannot be started: No such file"
            ),
            "{error}"
        );
    }

    #[tokio::test]
    async fn every_mistake_is_one_line_with_a_remedy() {
        let kubeconfig = Some(PathBuf::from("/nonexistent/config"));
        let error = of(ClientOptions { kubeconfig, ..Default::default() }, None).await.unwrap_err();
        assert_eq!(
            error,
            "cannot use the kubeconfig /nonexistent/config: No such file or directory (os error 2); \
             name a valid one with --kubeconfig or KUBECONFIG"
        );
        for (url, reason) in [
            ("localhost", "it does not begin with http:// or https://"),
            ("https://me:secret@host", "it holds credentials, which belong into a kubeconfig"),
        ] {
            let apiserver_host = Some(url.to_owned());
            let options = ClientOptions { apiserver_host, ..Default::default() };
            let error = of(options, None).await.unwrap_err();
            assert!(error.contains(reason) && !error.contains("secret@"), "{error}");
        }
        let empty = file("nothing");
        let options = ClientOptions {
            apiserver_host: Some("https://host".to_owned()),
            certificate_authority: Some(empty.path().to_owned()),
            ..Default::default()
        };
        let error = of(options, None).await.unwrap_err();
        assert!(error.contains("it holds no certificate in PEM form"), "{error}");
    }

    #[tokio::test]
    async fn a_context_is_chosen_among_those_that_there_are() {
        let two = file(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{name: a, cluster: {server: 'https://a:6443'}}, {name: b, cluster: {server: 'https://b:6443'}}]\n\
             contexts: [{name: a, context: {cluster: a, user: u}}, {name: b, context: {cluster: b, user: u}}]\n\
             users: [{name: u, user: {}}]\n",
        );
        let path = two.path().display().to_string();
        let with = |context: Option<&str>, kubeconfig: Option<PathBuf>| ClientOptions {
            kubeconfig,
            context: context.map(str::to_owned),
            ..ClientOptions::default()
        };
        let named = |context| of(with(context, Some(two.path().to_owned())), None);
        assert_eq!(named(None).await.expect("current").cluster_url, "https://a:6443/");
        assert_eq!(named(Some("b")).await.expect("named").cluster_url, "https://b:6443/");
        assert_eq!(
            named(Some("c")).await.expect_err("there is none"),
            format!("the kubeconfig {path} has no context c; give --context one that it has: a, b")
        );
        let of_environment = of(with(Some("b"), None), Some(&path)).await.expect("named");
        assert_eq!(of_environment.cluster_url, "https://b:6443/");
        let nowhere = of(with(Some("b"), None), None).await.expect_err("no kubeconfig");
        assert!(nowhere.starts_with("--context names a context of a kubeconfig"), "{nowhere}");
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_says_what_is_wrong_in_one_line() {
        let broken = file("apiVersion: v1\nkind: Config\nclusters: 7\n");
        let kubeconfig = Some(broken.path().to_owned());
        let error = of(ClientOptions { kubeconfig, ..Default::default() }, None).await.unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
