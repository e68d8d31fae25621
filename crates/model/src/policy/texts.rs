//! The texts of a location that are filled in for the request itself, which has matched its path.

use super::{Algorithm, Balance, FastCgi, LimitKey, Policy, RedirectRewrite, Replaced};
use crate::{Location, Template};

impl Policy {
    /// The texts in which `$1` to `$9` are what the request has matched: its path, or what a snippet looked at since.
    /// Texts for those who are asked about a request, or get copies of it, are none of these (nginx: subrequests, which
    /// have matched nothing), nor are those with groups of a match of their own.
    pub fn texts_of_request(&self) -> Vec<&Template> {
        let Self {
            protocol: _,
            http_version: _,
            fastcgi: FastCgi { index: _, params },
            upstream_tls: _,
            timeouts: _,
            retries: _,
            body: _,
            tls_redirect: _,
            client_certificate: _,
            ciphers: _,
            redirect,
            relative_redirects: _,
            upstream_host,
            rewrite,
            errors: _,
            default_backend: _,
            mirror: _,
            logging: _,
            opentelemetry,
            auth_basic: _,
            auth_external,
            access: _,
            limits,
            limit_rate: _,
            cors: _,
            answer_rewrites: _,
            connection_header: _,
            // They have none.
            custom_headers: _,
            balance,
            snippet: _,
            route: _,
            raw: _,
        } = self;
        let mut all: Vec<&Template> = params.iter().map(|(_, value)| &**value).collect();
        all.extend(redirect.iter().map(|redirect| &*redirect.target));
        all.extend(upstream_host);
        all.extend(rewrite.iter().filter_map(|rewrite| rewrite.prefix.as_ref()));
        all.extend(opentelemetry.iter().filter_map(|said| said.operation_name.as_ref()));
        all.extend(auth_external.iter().filter_map(|asked| asked.sign_in.as_deref()));
        if let LimitKey::Text(key) = &limits.key {
            all.push(key);
        }
        all.extend(balance.key());
        all.extend(self.texts_in_answers());
        all
    }

    /// Those by which texts in answers are replaced, and what is replaced.
    fn texts_in_answers(&self) -> impl Iterator<Item = &Template> {
        let rewrites = &self.answer_rewrites;
        let redirect = match &rewrites.redirect {
            RedirectRewrite::Replace(replacement) => Some(replacement),
            RedirectRewrite::Off | RedirectRewrite::UpstreamAddress => None,
        };
        let all = redirect.into_iter().chain(&rewrites.cookie_domain).chain(&rewrites.cookie_path);
        all.filter_map(|replacement| match &replacement.from {
            Replaced::Text(from) => Some([from, &*replacement.to]),
            Replaced::Pattern(_) => None,
        })
        .flatten()
    }
}

impl Balance {
    /// By what an endpoint is chosen, if that is a text.
    fn key(&self) -> Option<&Template> {
        match &self.algorithm {
            Algorithm::Hash(key) | Algorithm::HashSubset(key, _) => Some(key),
            Algorithm::RoundRobin | Algorithm::Random | Algorithm::Ewma => None,
        }
    }
}

impl Location {
    /// Whether what a request has matched is part of any text that it fills in itself, at its canary too.
    pub fn asks_for_groups(&self) -> bool {
        let of_canary = self.canary.iter().filter_map(|canary| canary.balance.key());
        self.policy.texts_of_request().into_iter().chain(of_canary).any(Template::has_groups)
    }
}
