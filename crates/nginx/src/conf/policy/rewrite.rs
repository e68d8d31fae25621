//! `rewrite-target` (ngx_http_rewrite_module, `rewrite … break`).

use super::super::location::At;
use super::super::pattern::{limit_of_paths, pattern_for};
use super::super::tree::{put, words};
use super::super::{Block, Word, templates};
use model::policy::Rewrite;
use model::{Part, Template, Variable};

pub(in crate::conf) fn write(policy: Option<&Rewrite>, at: &mut At<'_, '_>) {
    at.block.append(templates::find_out(&at.location.policy));
    // The prefix is a header field.
    let Some(rewrite @ Rewrite { pattern, target, prefix: _ }) = policy else { return };
    if rewrite.is_redirect() && target.parts().iter().any(|part| matches!(part, Part::Capture(_))) {
        // Of a path that an upstream names (X-Accel-Redirect) nginx escapes nothing: a line break would end Location.
        let mut refuse = Block::default();
        put!(refuse, "return", 400_u16);
        let broken = words!["(", "$uri", "~", "[\\x00-\\x1f\\x7f]", ")"];
        at.block.open("if", broken, refuse);
    }
    let limit = limit_of_paths(at.server);
    let pattern = limit.then("(?i)").then(pattern_for(at.location, pattern.source()));
    let target = match target.parts() {
        // By this very spelling nginx knows a redirect.
        [Part::Variable(Variable::Scheme), rest @ ..] => {
            Word::from("$scheme").then(Word::of_match(&Template::from_parts(rest.to_vec())))
        }
        _ => Word::of_match(target),
    };
    put!(at.block, "rewrite", pattern, target, "break");
}
