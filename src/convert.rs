//! `fairway convert`: objects of the Gateway API for Ingresses.

use crate::flags::Convert as Flags;
use crate::reading::{self, Objects};
use crate::say;
use crate::say::note;
use ::convert::{Converted, Target, Weight, is_file_name};
use anyhow::{Context, Result, ensure};
use model::Printable;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Converts, writes, and says by the exit code whether something was lost.
pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    let Flags {
        paths,
        output,
        gateway_class,
        gateway_name,
        gateway_namespace,
        mut source,
        classes,
    } = flags;
    source.manifests.extend(paths);
    let Objects { snapshot, options, .. } = reading::read(source, &classes)?;
    let unread = snapshot.malformed.len();
    let gateway = objects::ObjectKey::new(gateway_namespace, gateway_name);
    let converted =
        ::convert::convert(&snapshot, &options, &Target { class: gateway_class, gateway });
    for other in &converted.others {
        note!("not ours, not converted: {}: {}", other.ingress, other.reason);
    }
    ensure!(converted.ingresses > 0, "no Ingress is ours: nothing was converted");
    let unwritten = match output {
        None => {
            converted.objects.iter().try_for_each(|object| say::text(object.yaml()))?;
            0
        }
        Some(folder) => write(&converted, &folder)?,
    };
    note!("{}", totals(&converted));
    if unread > 0 {
        note!("not everything was converted: {unread} could not be read");
    }
    if unwritten > 0 {
        note!("not everything was written: {unwritten} of the objects have no file");
    }
    if unread + unwritten > 0 {
        return Ok(ExitCode::FAILURE);
    }
    Ok(if converted.is_lossy() { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// A file for each object; none of them takes the place of another one, nor lies elsewhere: those that cannot have one
/// are named, and how many they are is given back. Those of an earlier conversion that were not written again are
/// named: their Ingresses may have gone.
fn write(converted: &Converted, folder: &Path) -> Result<usize> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut written = BTreeSet::new();
    for object in &converted.objects {
        let name = match object.file_name() {
            Ok(name) if !written.contains(&name) => name,
            Ok(name) => {
                note!(
                    "not written: {name} holds another object already: convert it without --output"
                );
                continue;
            }
            Err(why) => {
                note!("not written: {}", Printable(&why));
                continue;
            }
        };
        let path = folder.join(&name);
        std::fs::write(&path, object.yaml())
            .with_context(|| format!("cannot write {}", path.display()))?;
        written.insert(name);
    }
    let entries = std::fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot list {}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut old: Vec<_> =
        names.filter(|name| is_file_name(name) && !written.contains(name)).collect();
    old.sort();
    if !old.is_empty() {
        note!(
            "not written this time, and there from before: {}; take them away, unless they are yours",
            old.join(", ")
        );
    }
    Ok(converted.objects.len() - written.len())
}

/// What became of everything, in a line.
fn totals(converted: &Converted) -> String {
    let of = |weights: &[Weight]| {
        converted.losses.iter().filter(|loss| weights.contains(&loss.weight)).count()
    };
    let lossy = converted.losses.iter().filter(|loss| loss.weight <= Weight::Otherwise);
    let touched: BTreeSet<_> = lossy.filter_map(|loss| loss.ingress.as_ref()).collect();
    format!(
        "Ingresses: {}, {} of them with losses; objects: {}; closed: {}, lost: {}, otherwise in form: {}, notes: {}",
        converted.ingresses,
        touched.len(),
        converted.objects.len(),
        of(&[Weight::Closed]),
        of(&[Weight::Lost, Weight::LostOverTls]),
        of(&[Weight::Otherwise]),
        of(&[Weight::NoteOverTls, Weight::Note]),
    )
}
