//! Headers of answers and of requests.

use super::inherit::settings;
use super::{Stacked, Template};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// What is done to headers.
    pub struct Headers {
        /// `add_header`
        pub add: Vec<AddHeader>,
        /// `add_trailer`
        pub add_trailer: Vec<AddHeader>,
        /// `expires`
        pub expires: Option<Expires>,
        /// `more_set_headers`, `more_clear_headers`
        pub more: Stacked<MoreHeader>,
        /// `more_set_input_headers`, `more_clear_input_headers`
        pub input: Stacked<InputHeader>,
        /// `proxy_set_header`
        pub proxy_set: Vec<SetHeader>,
        /// `grpc_set_header`
        pub grpc_set: Vec<SetHeader>,
        /// `fastcgi_param`
        pub fastcgi_params: Vec<SetHeader>,
    }
}

/// `add_header name value [always]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddHeader {
    /// The name.
    pub name: String,
    /// The value; an empty one adds nothing.
    pub value: Template,
    /// Whether with every status, not only with 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308.
    pub always: bool,
}

/// A header that is set for an upstream; an empty value takes it away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetHeader {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Template,
    /// `fastcgi_param … if_not_empty`: an empty value is not sent.
    pub if_not_empty: bool,
}

/// `expires`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Expires {
    /// `off`
    Off,
    /// `epoch`: long ago, and `no-cache`.
    Epoch,
    /// `max`: in ten years.
    Max,
    /// So long after now; negative values mean `no-cache`.
    After(Seconds),
    /// `modified`: so long after Last-Modified.
    Modified(Seconds),
    /// `@15h30m`: at a time of the day.
    Daily(Duration),
    /// One of the above, by a variable: read for each answer when it is known.
    Variable {
        /// Its value.
        value: Template,
        /// Whether `modified` precedes it.
        modified: bool,
    },
}

/// Seconds, perhaps negative.
pub(super) type Seconds = i64;

/// `X-Name` or `X-*`: a name of headers, without regard to case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeaderPattern {
    /// The name, or what it begins with; in lower case.
    pub name: String,
    /// Whether it ended in `*`.
    pub wildcard: bool,
}

impl HeaderPattern {
    /// Whether a header called `name` is meant.
    pub fn matches(&self, name: &str) -> bool {
        let start = name.get(..self.name.len());
        let is_start = start.is_some_and(|start| start.eq_ignore_ascii_case(&self.name));
        is_start && (self.wildcard || name.len() == self.name.len())
    }
}

/// One header of a `more_set_headers` or `more_clear_headers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoreHeader {
    /// What is done.
    pub action: MoreAction,
    /// With these status only; all if empty. Shared by the headers of a directive, as the types are.
    pub statuses: Arc<[u16]>,
    /// With these types of content only; all if empty.
    pub types: Arc<[String]>,
}

/// What is done with headers of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum MoreAction {
    /// Set, in place of all of that name; an empty value takes them away.
    Set(String, Template),
    /// `-a`: added beside those of that name.
    Append(String, Template),
    /// Taken away.
    Clear(HeaderPattern),
}

/// One header of a `more_set_input_headers` or `more_clear_input_headers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputHeader {
    /// What is done.
    pub action: InputAction,
    /// For requests with these types of content only; all if empty. Shared by the headers of a directive.
    pub types: Arc<[String]>,
}

/// What is done with headers of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum InputAction {
    /// Set.
    Set(String, Template),
    /// `-r`: set if it is there.
    Replace(String, Template),
    /// Taken away.
    Clear(HeaderPattern),
}
