//! The files of the databases: read whole, and read again once they are others.

use maxminddb::Reader;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes of a database at most.
const LARGEST: u64 = 1 << 30;

/// Where the databases are, and which.
#[derive(Clone, Debug, Default)]
pub struct GeoFiles {
    /// `--geoip-directory`.
    pub directory: PathBuf,
    /// `--maxmind-edition-ids`; the file of each has its name and ends with `.mmdb`.
    pub editions: Vec<String>,
}

/// Those that are there, in the order of the editions.
pub(super) type Databases = Vec<Arc<Database>>;

/// A database in memory.
pub(super) struct Database {
    /// Its edition.
    pub(super) name: String,
    /// What it says.
    pub(super) reader: Reader<Vec<u8>>,
    /// What its file was when it was read: when it was changed, and how long it was.
    state: State,
}

type State = (Option<SystemTime>, u64);

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
}

impl GeoFiles {
    /// The databases as of now; none if they are those that are known. One that became unreadable stays as it was.
    /// What is missing is said the first time only.
    pub(super) fn read(&self, known: &Databases, first: bool) -> Option<Databases> {
        let mut changed = false;
        let databases = self.editions.iter().filter_map(|name| {
            let before = known.iter().find(|database| database.name == *name);
            match self.one(name, before) {
                Ok(None) => before.cloned(),
                Ok(Some(database)) => {
                    changed = true;
                    tracing::info!(database = name, "a database about addresses was read");
                    Some(Arc::new(database))
                }
                Err(error) => {
                    self.complain(name, &error, first);
                    before.cloned()
                }
            }
        });
        let databases = databases.collect();
        changed.then_some(databases)
    }

    /// The database of an edition, if it is another one than before.
    fn one(&self, name: &str, before: Option<&Arc<Database>>) -> Result<Option<Database>, String> {
        let path = self.directory.join(format!("{name}.mmdb"));
        let about = fs::metadata(&path).map_err(|error| error.to_string())?;
        let state = (about.modified().ok(), about.len());
        if before.is_some_and(|before| before.state == state) {
            return Ok(None);
        }
        if about.len() > LARGEST {
            return Err(format!("it has more than {LARGEST} bytes"));
        }
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        let reader = Reader::from_source(bytes).map_err(|error| error.to_string())?;
        Ok(Some(Database { name: name.to_owned(), reader, state }))
    }

    fn complain(&self, name: &str, error: &str, first: bool) {
        let directory = self.directory.display();
        if !first {
            tracing::debug!(database = name, %directory, error, "a database about addresses cannot be read");
        } else {
            tracing::warn!(database = name, %directory, error,
                "use-geoip2: a database is missing, its variables are empty; put the file there");
        }
    }
}
