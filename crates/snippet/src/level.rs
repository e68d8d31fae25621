//! Where a directive may stand.

use std::fmt;

/// One kind of place that nginx's configuration has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The top of the file.
    Main,
    /// `http`
    Http,
    /// `server`
    Server,
    /// `location`
    Location,
    /// `if` in a server.
    ServerIf,
    /// `if` in a location.
    LocationIf,
    /// `limit_except`
    LimitExcept,
    /// `stream`
    Stream,
}

/// A set of [`Level`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub(crate) u8);

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Main, "main"),
        (Self::Http, "http"),
        (Self::Server, "server"),
        (Self::Location, "location"),
        (Self::ServerIf, "if in server"),
        (Self::LocationIf, "if in location"),
        (Self::LimitExcept, "limit_except"),
        (Self::Stream, "stream"),
    ];

    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Levels {
    /// One bit for each.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether `level` is among them.
    pub fn has(self, level: Level) -> bool {
        self.0 & level.bit() != 0
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Level::ALL
            .iter()
            .filter(|(level, _)| self.has(*level))
            .map(|(_, name)| *name)
            .collect();
        f.write_str(&names.join(", "))
    }
}

/// The kind of snippet that a text is: which key it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// `configuration-snippet` of an Ingress, `location-snippet` of the ConfigMap.
    Location,
    /// `server-snippet`, of an Ingress or of the ConfigMap.
    Server,
    /// `auth-snippet`, `global-auth-snippet`: the location that asks the authenticator.
    Auth,
    /// `http-snippet`
    Http,
    /// `main-snippet`
    Main,
    /// `stream-snippet`
    Stream,
}

impl Context {
    /// Where in nginx's configuration it stands.
    pub fn level(self) -> Level {
        match self {
            Self::Location | Self::Auth => Level::Location,
            Self::Server => Level::Server,
            Self::Http => Level::Http,
            Self::Main => Level::Main,
            Self::Stream => Level::Stream,
        }
    }
}
