//! From the JSON of GRPCRoutes to what is kept of them: the same as of HTTPRoutes, but for what matches ask for.

use super::filters::{RawFilter, filters};
use super::parse::{RawParent, RouteTold, parents};
use super::parse_rules::{RawBackend, RawNamed, Unread, Unsaid, named};
use super::route::{HttpRoute, MethodMatch, PathMatch, RouteFilter, RouteMatch, RouteRule};
use super::session::RawSession;
use crate::trim::{Annotations, each, meta};
use crate::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::sync::Arc;

/// `spec` of a GRPCRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GrpcSpec {
    parent_refs: Vec<RawParent>,
    hostnames: Vec<String>,
    rules: Vec<RawRule>,
    use_default_gateways: Unread,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRule {
    matches: Vec<RawMatch>,
    filters: Vec<RawFilter>,
    backend_refs: Vec<RawBackend>,
    session_persistence: Option<RawSession>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawMatch {
    method: RawMethod,
    headers: Vec<RawNamed>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawMethod {
    r#type: Option<String>,
    service: Option<String>,
    method: Option<String>,
}

impl GrpcSpec {
    pub(super) fn read(self, metadata: ObjectMeta, status: RouteTold) -> Result<Object, String> {
        let mut unread = Unsaid::default();
        unread.note(self.use_default_gateways.is_some(), || "spec.useDefaultGateways".to_owned());
        let rules = each(Some(self.rules), |index, rule| {
            rule.read(&format!("spec.rules[{index}]"), &mut unread)
        })?;
        Ok(Object::HttpRoute(Arc::new(HttpRoute {
            rules,
            meta: meta(metadata, Annotations::Dropped)?,
            kind: Kind::GrpcRoute,
            parents: parents(self.parent_refs)?,
            hostnames: self.hostnames,
            unread: unread.0,
            told_by: status.by(),
        })))
    }
}

impl RawRule {
    fn read(self, at: &str, unread: &mut Unsaid) -> Result<RouteRule, String> {
        let mut own = Unsaid::default();
        let session = self.session_persistence.map(|raw| raw.read(at, &mut own).map(Box::new));
        let session = session.transpose()?;
        let mut matches = each(Some(self.matches), |index, found| {
            Ok(found.read(&format!("{at}.matches[{index}]"), unread))
        })?;
        if matches.is_empty() {
            matches.push(RawMatch::default().read(at, unread));
        }
        let backends = each(Some(self.backend_refs), |index, one| {
            let at = format!("{at}.backendRefs[{index}]");
            let read = one.read(&at, &mut own)?;
            of_calls(&read.filters, &at, &mut own);
            Ok(read)
        })?;
        let filters = filters(self.filters, at, &mut own)?;
        of_calls(&filters, at, &mut own);
        Ok(RouteRule {
            matches,
            filters,
            backends,
            request_timeout: None,
            backend_timeout: None,
            retry: None,
            session,
            unread: own.0.map(String::into_boxed_str),
        })
    }
}

/// Notes a filter that is neither one of header fields nor a mirror: what others do is not meant for streams of
/// messages.
fn of_calls(filters: &[RouteFilter], at: &str, unread: &mut Unsaid) {
    let known = |filter: &RouteFilter| {
        matches!(
            filter,
            RouteFilter::RequestHeaders(_)
                | RouteFilter::ResponseHeaders(_)
                | RouteFilter::Mirror(_)
        )
    };
    unread.note(!filters.iter().all(known), || {
        format!(
            "{at}.filters: a filter other than RequestHeaderModifier, ResponseHeaderModifier and RequestMirror"
        )
    });
}

impl RawMatch {
    fn read(self, at: &str, unread: &mut Unsaid) -> RouteMatch {
        let RawMethod { r#type: kind, service, method } = self.method;
        let is_expression = match kind.as_deref() {
            None | Some("Exact") => false,
            Some("RegularExpression") => true,
            Some(other) => {
                let known = "Exact or RegularExpression";
                unread.other(|| format!("{at}.method.type"), other, known);
                false
            }
        };
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (service, method) = (said(service), said(method));
        RouteMatch {
            path: PathMatch::Method(MethodMatch { service, method, is_expression }),
            headers: named(self.headers, at, "headers", unread),
            ..RouteMatch::default()
        }
    }
}
