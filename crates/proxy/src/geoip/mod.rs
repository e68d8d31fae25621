//! Databases about addresses (`use-geoip2`, MaxMind's format): read in the background, looked into only where a
//! template has one of their variables.

mod files;

pub use files::GeoFiles;

use crate::geoip::files::{Database, Databases};
use arc_swap::ArcSwap;
use maxminddb::PathElement;
use model::{GeoStep, GeoVariable};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The databases of the process.
#[derive(Debug, Default)]
pub(crate) struct GeoIp {
    files: GeoFiles,
    databases: ArcSwap<Databases>,
    wanted: AtomicBool,
    watching: AtomicBool,
}

impl GeoIp {
    /// Databases of which nothing is read yet.
    pub(crate) fn new(files: GeoFiles) -> Self {
        Self { files, ..Self::default() }
    }

    /// Reads the databases if they are wanted, and goes on looking for changes; forgets them if they are not.
    pub(crate) async fn follow(self: &Arc<Self>, wanted: bool) {
        if self.wanted.swap(wanted, Ordering::AcqRel) == wanted {
            return;
        }
        if !wanted {
            self.databases.store(Arc::default());
            return;
        }
        self.look(true).await;
        if !self.watching.swap(true, Ordering::AcqRel) {
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Reads what is new.
    async fn look(&self, first: bool) {
        if self.files.editions.is_empty() {
            tracing::warn!("use-geoip2 has no effect: nobody said which databases there are");
            return;
        }
        let (files, known) = (self.files.clone(), self.databases.load_full());
        let read = tokio::task::spawn_blocking(move || files.read(&known, first)).await;
        if let (Ok(Some(databases)), true) = (read, self.wanted.load(Ordering::Acquire)) {
            self.databases.store(Arc::new(databases));
        }
    }

    /// Appends what the databases say about an address.
    pub(crate) fn push(&self, variable: &GeoVariable, address: IpAddr, out: &mut String) {
        let start = out.len();
        let databases = self.databases.load();
        let mut having = databases
            .iter()
            .filter(|one| variable.databases.iter().any(|end| one.name.ends_with(end)));
        if !having.any(|one| push(one, variable, address, out).is_some()) {
            out.truncate(start);
            out.push_str(variable.default);
        }
    }
}

async fn watch(geoip: Weak<GeoIp>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(geoip) = geoip.upgrade() else { return };
        if geoip.wanted.load(Ordering::Acquire) {
            geoip.look(false).await;
        }
    }
}

/// A value as ngx_http_geoip2_module prints it.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Value<'a> {
    Flag(bool),
    Number(u64),
    Decimal(f64),
    Text(&'a str),
}

fn push(
    database: &Database,
    variable: &GeoVariable,
    address: IpAddr,
    out: &mut String,
) -> Option<()> {
    let found = database.reader.lookup(address).ok()?;
    let path: Vec<PathElement<'_>> = variable
        .path
        .iter()
        .map(|step| match step {
            GeoStep::Key(name) => PathElement::Key(name),
            GeoStep::Index(number) => PathElement::Index(*number),
        })
        .collect();
    // Writing to a string cannot fail.
    let _ = match found.decode_path::<Value<'_>>(&path).ok()?? {
        Value::Flag(flag) => write!(out, "{}", u8::from(flag)),
        Value::Number(number) => write!(out, "{number}"),
        Value::Decimal(number) => write!(out, "{number:.5}"),
        Value::Text(text) => write!(out, "{text}"),
    };
    Some(())
}

#[cfg(test)]
mod tests;
