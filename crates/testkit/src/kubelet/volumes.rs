//! Volumes of Secrets and ConfigMaps: folders of the Node. A container shares the Node's file system, so what its
//! environment and arguments say about a mount leads to the folder instead.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Container, KeyToPath, Pod, Secret, Volume};
use kube::core::NamespaceResourceScope;
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;

use super::Host;

/// Pause before something that is not there is asked for again, as kubelets do.
const PAUSE: Duration = Duration::from_millis(200);

/// The files of a volume by name.
type Files = BTreeMap<String, Vec<u8>>;

/// The folders of a Pod's volumes, by the name of the volume.
#[derive(Debug, Default)]
pub(super) struct Folders(BTreeMap<String, String>);

impl Folders {
    /// Makes them; waits for what they come from.
    pub(super) async fn make(host: &Host, pod: &Pod) -> Result<Self> {
        let mut folders = BTreeMap::new();
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        for volume in volumes {
            let Some(files) = files(host, pod, volume).await? else { continue };
            let name = format!("{}_{}", pod.uid().unwrap_or_default(), volume.name);
            let folder = host.logs.join("volumes").join(name);
            std::fs::create_dir_all(&folder).context("make the folder of a volume")?;
            for (name, bytes) in files {
                std::fs::write(folder.join(name), bytes).context("write a file of a volume")?;
            }
            folders.insert(volume.name.clone(), folder.display().to_string());
        }
        Ok(Self(folders))
    }

    /// A text of a container with the places of its mounts replaced by the folders.
    pub(super) fn resolved(&self, container: &Container, text: &str) -> String {
        let mounts = container.volume_mounts.iter().flatten();
        for mount in mounts {
            let Some(folder) = self.0.get(&mount.name) else { continue };
            if let Some(rest) = text.strip_prefix(&mount.mount_path) {
                return format!("{folder}{rest}");
            }
        }
        text.to_owned()
    }
}

/// The files of a volume; none if it is of another kind, of which nothing is made.
async fn files(host: &Host, pod: &Pod, volume: &Volume) -> Result<Option<Files>> {
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let found: Option<Secret> = wait(host, pod, name, source.optional).await?;
        let data = found.and_then(|found| found.data).unwrap_or_default().into_iter();
        let data = data.map(|(name, bytes)| (name, bytes.0)).collect();
        return chosen(data, source.items.as_deref()).map(Some);
    }
    if let Some(source) = &volume.config_map {
        let found: Option<ConfigMap> = wait(host, pod, &source.name, source.optional).await?;
        let data = found.and_then(|found| found.data).unwrap_or_default().into_iter();
        let data = data.map(|(name, text)| (name, text.into_bytes())).collect();
        return chosen(data, source.items.as_deref()).map(Some);
    }
    Ok(None)
}

/// All entries, or those that `items` names, under the names that it gives them.
fn chosen(mut data: Files, items: Option<&[KeyToPath]>) -> Result<Files> {
    let Some(items) = items else { return Ok(data) };
    let files = items.iter().map(|item| {
        let bytes = data.remove(&item.key);
        let bytes = bytes.with_context(|| format!("items: there is no key {}", item.key))?;
        Ok((item.path.clone(), bytes))
    });
    files.collect()
}

/// An object, as soon as it is there; none if it may be missing and is.
async fn wait<K>(host: &Host, pod: &Pod, name: &str, may_miss: Option<bool>) -> Result<Option<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + DeserializeOwned + Debug,
{
    let namespace = pod.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(host.client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(host.client.clone(), &namespace);
    loop {
        match api.get_opt(name).await {
            Ok(None) if may_miss == Some(true) => return Ok(None),
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) | Err(_) => {}
        }
        if let Ok(now) = pods.get_opt(&pod.name_any()).await {
            let stays = now.is_some_and(|now| now.metadata.deletion_timestamp.is_none());
            ensure!(stays, "the Pod left before its volume {name} was there");
        }
        #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
        tokio::time::sleep(PAUSE).await;
    }
}
