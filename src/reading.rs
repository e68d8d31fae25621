//! The objects that `check` and `explain` look at, once.

use crate::flags::{Classes, Source};
use crate::say::note;
use crate::{default_class, passed_over, sources};
use anyhow::{Context, Result, anyhow, bail, ensure};
use objects::manifests::parts_of_chart;
use objects::{ConfigMap, IngressClass, Kind, Malformed, Meta, ObjectKey, Snapshot, Unread};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use translate::{Options, config_map_rows};

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";
/// Where ingress-nginx's manifests put its ConfigMap, and where ours do: the first that is there counts, be it empty.
const USUAL_CONFIG_MAPS: [(&str, &str); 2] =
    [("ingress-nginx", "ingress-nginx-controller"), ("fairway", "fairway")];
/// How charts and older manifests call it, after the name of a release.
const USUAL_ENDS: [&str; 4] = [
    "ingress-nginx-controller",
    "nginx-ingress-controller",
    "nginx-configuration",
    "fairway-controller",
];

/// Where kubectl looks for a cluster, if nothing else is said and this is no Pod: `kubectl fairway check` needs no
/// flag.
pub(crate) fn as_kubectl(mut source: Source) -> Source {
    let is_said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_elsewhere = !source.manifests.is_empty()
        || source.kubeconfig.is_some()
        || source.apiserver_host.is_some()
        || is_said("KUBECONFIG")
        || (is_said("KUBERNETES_SERVICE_HOST") && source.context.is_none());
    let usual = std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
    if !is_elsewhere {
        source.kubeconfig = usual.filter(|path| path.exists());
    }
    source
}

/// Whether a path is standard input, or a pipe as `<(kubectl …)` makes one: it is read once, and cannot be followed.
fn is_pipe(path: &Path) -> bool {
    path == Path::new(STDIN) || fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
}

/// The objects of pipes, and of nothing else.
fn piped(paths: &[PathBuf]) -> Result<Snapshot> {
    if let Some(file) = paths.iter().find(|path| !is_pipe(path)) {
        bail!(
            "{} would not be read beside a pipe: give files and folders alone, or cat them into it",
            file.display()
        );
    }
    let mut texts = Vec::new();
    for path in paths {
        let (mut bytes, is_stdin) = (Vec::new(), path == Path::new(STDIN));
        let name = if is_stdin { PathBuf::from("standard input") } else { path.clone() };
        let read = if is_stdin {
            io::stdin().read_to_end(&mut bytes)
        } else {
            fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
        };
        read.with_context(|| format!("cannot read {}", name.display()))?;
        let text = objects::manifests::text_of(bytes)
            .map_err(|what| anyhow!("cannot read {}: {what}", name.display()))?;
        texts.push((name, text));
    }
    let texts = texts.iter().map(|(name, text)| (name.as_path(), text.as_str()));
    Ok(objects::snapshot_of(texts))
}

/// The objects of files, folders or pipes, or of a cluster, as they are now.
pub(crate) fn once(source: Source, options: &Options) -> Result<Snapshot> {
    if source.manifests.iter().any(|path| is_pipe(path)) {
        return piped(&source.manifests);
    }
    sources::first_snapshot(source, options)
}

/// What was read.
pub(crate) struct Objects {
    pub(crate) snapshot: Snapshot,
    pub(crate) options: Options,
    /// What is said of a class that is not among the objects, where that decides whether Ingresses are served.
    pub(crate) assumed: Option<String>,
}

/// The objects as they are now, and what the command line says about their meaning; what is assumed is said.
pub(crate) fn read(source: Source, classes: &Classes) -> Result<Objects> {
    let source = as_kubectl(source);
    let watch_namespace = sources::watched(&source).map(str::to_owned);
    let mut options = Options { watch_namespace, ..sources::options(classes) };
    let is_folder = !source.manifests.is_empty();
    let passed_over: Vec<_> =
        source.manifests.iter().flat_map(|path| passed_over::files(path, 0)).collect();
    let mut snapshot = once(source, &options).map_err(|error| without_cluster(error, is_folder))?;
    let assumed = if is_folder { assume_class(&mut snapshot, &options) } else { None };
    if is_folder {
        default_class::give(&mut snapshot);
    }
    if !is_folder {
        note!(
            "flags of a controller that runs are not read from its Deployment: give those that say what is served, such \
             as --ingress-class, --controller-class and --watch-namespace, here, too"
        );
    }
    for (path, message) in passed_over {
        let key = ObjectKey::new("", path.display().to_string());
        let id = Arc::clone(&key.name);
        let malformed = Malformed {
            kind: None,
            key,
            of: None,
            why: Unread::Wrong,
            message: message.to_owned(),
        };
        snapshot.malformed.insert(id, Arc::new(malformed));
    }
    leave_out_templates(&mut snapshot);
    let mut unread: Vec<_> = snapshot.malformed.values().collect();
    unread.sort_by_key(|it| (it.kind, &it.key));
    for malformed in unread {
        let key = &malformed.key;
        match malformed.kind {
            None => note!("not read: {}: {}", key.name, malformed.message),
            Some(kind) => {
                note!("not read: {kind} {}/{}: {}", key.namespace, key.name, malformed.message)
            }
        }
    }
    settle_config_map(&snapshot, &mut options)?;
    Ok(Objects { snapshot, options, assumed })
}

/// Finds the controller's ConfigMap where no flag names it.
pub(crate) fn settle_config_map(snapshot: &Snapshot, options: &mut Options) -> Result<()> {
    has_named_config_maps(snapshot, options)?;
    if options.config_map.is_none() {
        options.config_map = likely_config_map(snapshot)?;
    }
    Ok(())
}

/// Whether the ConfigMaps are there that flags name: without one, defaults would be looked at for what it says.
fn has_named_config_maps(snapshot: &Snapshot, options: &Options) -> Result<()> {
    for (key, flag) in [
        (&options.config_map, "--configmap"),
        (&options.tcp_services, "--tcp-services-configmap"),
        (&options.udp_services, "--udp-services-configmap"),
    ] {
        let Some(key @ ObjectKey { namespace, name }) = key else { continue };
        if snapshot.config_maps.contains_key(key) {
            continue;
        }
        ensure!(
            !Malformed::is_among(&snapshot.malformed, Kind::ConfigMap, key),
            "ConfigMap {namespace}/{name}, which {flag} names, could not be read: mend it"
        );
        // Elsewhere, one that may not be read counts as absent.
        let is_elsewhere =
            options.watch_namespace.as_ref().is_some_and(|watched| **watched != **namespace);
        let or = if is_elsewhere { ", or it may not be read" } else { "" };
        bail!("there is no ConfigMap {namespace}/{name}, which {flag} names{or}");
    }
    Ok(())
}

/// Where there is no cluster, what else may be read: people begin with a folder, or with a pipe.
fn without_cluster(error: anyhow::Error, is_folder: bool) -> anyhow::Error {
    match error.downcast_ref::<kubernetes::Error>() {
        Some(kubernetes::Error::NoCluster) if !is_folder => anyhow!(
            "found nothing to read: give a folder (`fairway check DIR`, or --manifests DIR with other commands), - for \
             what comes through a pipe (`kubectl get … -o yaml | fairway check -`), or a cluster: there is neither \
             --kubeconfig nor KUBECONFIG nor ~/.kube/config nor --apiserver-host, and this is no Pod"
        ),
        _ => error,
    }
}

/// Leaves out what is wrong with the templates of a Helm chart: that it is one is told, once.
fn leave_out_templates(snapshot: &mut Snapshot) {
    let files = || snapshot.malformed.iter().filter(|(_, found)| found.kind.is_none());
    let parts: Vec<_> = files().flat_map(|(_, found)| parts_of_chart(&found.key.name)).collect();
    let is_part = |name: &str| parts.iter().any(|part| name.starts_with(part.as_str()));
    let said: Vec<_> =
        files().filter(|(_, found)| is_part(&found.key.name)).map(|(id, _)| id.clone()).collect();
    for id in said {
        snapshot.malformed.remove(&id);
    }
}

/// The Issuers of the cluster, which only `check` asks about; why there are none is said.
pub(crate) fn add_issuers(source: Source, snapshot: &mut Snapshot) {
    let source = as_kubectl(source);
    if !source.manifests.is_empty() || !translate::name_issuers(snapshot) {
        return;
    }
    match sources::issuers(&source) {
        Ok(issuers) => {
            let named = issuers.into_iter().map(|issuer| (issuer.key.clone(), Arc::new(issuer)));
            snapshot.issuers = named.collect();
        }
        Err(reason) => note!(
            "the Issuers of cert-manager are not known, so nothing is said of the class of their challenges: {reason:#}"
        ),
    }
}

/// The ConfigMap of ingress-nginx's own manifests, or of ours, if it is there.
pub(crate) fn usual_config_map(snapshot: &Snapshot) -> Option<ObjectKey> {
    let usual = USUAL_CONFIG_MAPS.map(|(namespace, name)| ObjectKey::new(namespace, name));
    usual.into_iter().find(|key| snapshot.config_maps.contains_key(key))
}

/// The ConfigMap of the controller where no flag names it: that of ingress-nginx's own manifests or of ours, else the
/// only one that looks like it. Its settings decide about much, so nothing is guessed among several.
fn likely_config_map(snapshot: &Snapshot) -> Result<Option<ObjectKey>> {
    let usual = usual_config_map(snapshot);
    let known: BTreeSet<&str> = config_map_rows().iter().map(|row| row.name).collect();
    let looks_like_it = |map: &&Arc<ConfigMap>| {
        let is_called_so = USUAL_ENDS.iter().any(|end| map.meta.key.name.ends_with(end));
        let says_so = !map.data.is_empty() && map.data.keys().all(|key| known.contains(&**key));
        is_called_so || says_so
    };
    let likely = snapshot.config_maps.values().filter(looks_like_it).map(|map| &map.meta.key);
    let likely: Vec<&ObjectKey> = likely.collect();
    let found = match (&usual, likely.as_slice()) {
        (Some(usual), _) => usual,
        (None, [one]) => *one,
        (None, []) => {
            match unread_config_map(snapshot) {
                Some(ObjectKey { namespace, name }) => note!(
                    "ConfigMap {namespace}/{name} could not be read, and no other looks like the controller's: its defaults \
                     count; mend it"
                ),
                None => note!(
                    "no ConfigMap of the controller: its defaults count (--configmap names one)"
                ),
            }
            return Ok(None);
        }
        (None, several) => {
            let names = several.iter().map(|key| format!("{}/{}", key.namespace, key.name));
            let names = names.collect::<Vec<_>>().join(", ");
            bail!(
                "any of these ConfigMaps may be the controller's: {names}; name it by --configmap"
            )
        }
    };
    note!("using ConfigMap {}/{} (--configmap names another)", found.namespace, found.name);
    Ok(Some(found.clone()))
}

/// A ConfigMap that is called as those of controllers are and could not be read.
fn unread_config_map(snapshot: &Snapshot) -> Option<ObjectKey> {
    let unread = snapshot.malformed.values().filter_map(|malformed| malformed.object());
    let is_called_so = |key: &ObjectKey| {
        let usual = USUAL_CONFIG_MAPS.contains(&(&*key.namespace, &*key.name));
        usual || USUAL_ENDS.iter().any(|end| key.name.ends_with(end))
    };
    let mut maps = unread.filter(|(kind, _)| *kind == Kind::ConfigMap).map(|(_, key)| key);
    maps.find(is_called_so)
}

/// Folders rarely hold the IngressClass: without any, the usual one is taken as ours.
fn assume_class(snapshot: &mut Snapshot, options: &Options) -> Option<String> {
    if snapshot.classes.as_ref().is_some_and(|classes| !classes.is_empty()) {
        return None;
    }
    let key = ObjectKey::new("", options.ingress_class.as_str());
    note!("no IngressClass found: Ingresses of class {} count as ours", key.name);
    let meta = Meta { key: key.clone(), ..Meta::default() };
    let class = IngressClass { meta, controller: options.controller_class.clone() };
    let mut ingresses = snapshot.ingresses.values();
    let is_named = ingresses.any(|ingress| ingress.class.as_deref() == Some(&*key.name));
    let told = is_named.then(|| {
        format!(
            "none is among the objects: `fairway run` answers 404 for Ingresses of class {} until it is (its \
             spec.controller is {})",
            key.name, options.controller_class
        )
    });
    snapshot.classes = Some(std::iter::once((key, Arc::new(class))).collect());
    told
}
