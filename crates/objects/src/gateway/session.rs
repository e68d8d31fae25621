//! From the JSON of `sessionPersistence` of a rule to what is kept of it: an experimental field, whose form changed.

use super::duration::duration;
use super::parse_rules::Unsaid;
use super::route::SessionPersistence;
use serde::Deserialize;

/// Both forms: `sessionName` and `cookieConfig` until version 1.6, `cookie` and `header` after it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSession {
    session_name: Option<String>,
    absolute_timeout: Option<String>,
    idle_timeout: Option<String>,
    r#type: Option<String>,
    cookie_config: RawCookie,
    cookie: RawCookie,
    header: RawHeader,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCookie {
    name: Option<String>,
    path: Option<String>,
    lifetime_type: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawHeader {
    name: Option<String>,
}

impl RawSession {
    pub(super) fn read(self, at: &str, unread: &mut Unsaid) -> Result<SessionPersistence, String> {
        let at = format!("{at}.sessionPersistence");
        let time = |text: Option<String>, field: &str| {
            duration(text.as_deref(), || format!("{at}.{field}"))
        };
        let in_header = match self.r#type.as_deref() {
            None | Some("Cookie") => false,
            Some("Header") => true,
            Some(other) => {
                unread.note(true, || format!("{at}.type {other}"));
                false
            }
        };
        let lifetime = self.cookie.lifetime_type.or(self.cookie_config.lifetime_type);
        let is_permanent = match lifetime.as_deref() {
            None | Some("Session") => false,
            Some("Permanent") => true,
            Some(other) => {
                unread.note(true, || format!("{at}.lifetimeType {other}"));
                false
            }
        };
        let name = if in_header { self.header.name } else { self.cookie.name };
        Ok(SessionPersistence {
            name: name.or(self.session_name),
            in_header,
            is_permanent,
            path: self.cookie.path,
            lasts: time(self.absolute_timeout, "absoluteTimeout")?,
            idle: time(self.idle_timeout, "idleTimeout")?,
        })
    }
}
