//! All texts with variables that a location or the process says in heads: what they are made of has to be known before.

use super::tree::put;
use super::{Block, Scope, Word, one_line, word};
use model::policy::{
    AnswerRewrites, AuthExternal, FastCgi, LimitKey, Mirror, Policy, RedirectRewrite, Replaced,
};
use model::{Global, Part, Server, Template, Url, Variable};
use std::collections::BTreeSet;

/// Notes the variables of snippets that the process has in its own templates.
pub(super) fn note_global(global: &Global, scope: &mut Scope<'_>) {
    let headers = global.add_headers.iter().chain(&global.proxy_set_headers);
    headers.for_each(|header| note(&header.value, scope));
}

/// The same of a host.
pub(super) fn note_server(server: &Server, scope: &mut Scope<'_>) {
    server.app_root.iter().for_each(|template| note(template, scope));
}

fn note(template: &Template, scope: &mut Scope<'_>) {
    scope.of_snippets.extend(one_line::of_snippets(template));
}

/// Keeps the groups of a location's path that its policy says somewhere: whatever matches next has others. Where two
/// things are in one text, nginx measures it and then fills it in, and a pattern that is looked at in between would
/// have more written than was measured.
pub(super) fn keep_groups(server: &Server, policy: &Policy, scope: &mut Scope<'_>) -> Block {
    of_policy(policy).into_iter().for_each(|template| note(template, scope));
    // Other hosts have none; those of the host's name are no groups of a path.
    if server.regex { keep_groups_now(policy) } else { Block::default() }
}

/// The text of `upstream-hash-by`, which Lua fills in: whatever was looked at since, groups are those that were kept.
pub(crate) fn text_of_key(key: &Template) -> String {
    let of_group = |part: &Part| match part {
        Part::Capture(group) => format!("${{{}}}", one_line::own(*group)),
        other => Template::from_parts(vec![other.clone()]).to_string(),
    };
    key.parts().iter().map(of_group).collect()
}

/// Keeps the groups of what was matched last where this stands: a path, or what somebody has written in nginx's own
/// words.
pub(super) fn keep_groups_now(policy: &Policy) -> Block {
    let all = policy.texts_of_request();
    let parts = all.iter().flat_map(|template| template.parts());
    let groups: BTreeSet<usize> = parts
        .filter_map(|part| match part {
            Part::Capture(group) => Some(*group),
            Part::Text(_) | Part::Variable(_) => None,
        })
        .collect();
    let mut block = Block::default();
    for group in groups {
        let name = Word::plain(format!("${}", one_line::own(group)));
        put!(block, "set", name, Word::plain(format!("${group}")));
    }
    block
}

/// Finds out what patterns find out of the variables in texts that have groups of a match of their own
/// ([`Word::of_match`]).
pub(super) fn find_out(policy: &Policy) -> Block {
    let rewrite = policy.rewrite.iter().map(|rewrite| &rewrite.target);
    let AnswerRewrites { redirect, cookie_domain, cookie_path } = &policy.answer_rewrites;
    let redirect = match redirect {
        RedirectRewrite::Replace(replacement) => Some(replacement),
        RedirectRewrite::Off | RedirectRewrite::UpstreamAddress => None,
    };
    let answers = [redirect, cookie_domain.as_ref(), cookie_path.as_ref()].into_iter().flatten();
    let answers = answers.filter(|replacement| matches!(replacement.from, Replaced::Pattern(_)));
    let parts =
        rewrite.chain(answers.map(|replacement| &*replacement.to)).flat_map(Template::parts);
    let mut known = BTreeSet::new();
    let mut block = Block::default();
    for part in parts {
        let Part::Variable(variable) = part else { continue };
        if one_line::is_found_by_patterns(variable) && known.insert(variable.name()) {
            let name = Word::plain(format!("${}", word::found(variable)));
            put!(block, "set", name, Word::template(&of_one(variable)));
        }
    }
    block
}

fn of_one(variable: &Variable) -> Template {
    Template::from_parts(vec![Part::Variable(variable.clone())])
}

/// Every template of a policy but those that have groups of a match of their own.
fn of_policy(policy: &Policy) -> Vec<&Template> {
    let Policy {
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
        mirror,
        logging: _,
        opentelemetry: _,
        auth_basic: _,
        auth_external,
        access: _,
        limits,
        limit_rate: _,
        cors: _,
        // What replaces has groups of its own; what is replaced has none.
        answer_rewrites: _,
        connection_header: _,
        custom_headers,
        balance: _,
        snippet: _,
        route: _,
        raw: _,
    } = policy;
    let mut all: Vec<&Template> = params.iter().map(|(_, value)| &**value).collect();
    all.extend(redirect.iter().map(|redirect| &*redirect.target));
    all.extend(upstream_host);
    all.extend(rewrite.iter().filter_map(|rewrite| rewrite.prefix.as_ref()));
    if let Some(Mirror { url, host, body: _ }) = mirror.as_deref() {
        all.extend(of_url(url).into_iter().chain(host));
    }
    if let Some(authenticator) = auth_external.as_deref() {
        all.extend(of_authenticator(authenticator));
    }
    if let LimitKey::Text(key) = &limits.key {
        all.push(key);
    }
    all.extend(custom_headers.0.iter().map(|header| &*header.value));
    all
}

fn of_url(Url { secure: _, authority, target, upstream: _ }: &Url) -> [&Template; 2] {
    [authority, target]
}

fn of_authenticator(authenticator: &AuthExternal) -> impl Iterator<Item = &Template> {
    let AuthExternal {
        url,
        method: _,
        sign_in,
        response_headers: _,
        request_headers,
        request_redirect,
        always_set_cookie: _,
        cache,
        snippet: _,
    } = authenticator;
    let pages = sign_in.iter().chain(request_redirect).map(|page| &**page);
    let headers = request_headers.iter().map(|(_, value)| &**value);
    let keys = cache.iter().map(|cache| &cache.key);
    of_url(url).into_iter().chain(pages).chain(headers).chain(keys)
}
