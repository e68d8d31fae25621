//! `enable-cors` and `cors-*`: preflights are answered, answers to allowed origins say so.

use super::super::location::At;
use super::super::tree::{put, words};
use super::super::{Block, Word};
use model::policy::{AllowedOrigin, Cors, Origins};

/// Bytes of a pattern of several origins: nginx reads 4,000 as one parameter, and some take two in quotes.
const TOGETHER: usize = 1_500;

pub(in crate::conf) fn write(policy: Option<&Cors>, at: &mut At<'_, '_>) {
    if let Some(policy) = policy {
        at.block.append(block(policy));
    }
}

/// The directives of a policy.
pub(in crate::conf) fn block(policy: &Cors) -> Block {
    let mut block = Block::default();
    put!(block, "set", "$cors", "");
    match &policy.origins {
        Origins::Any => put!(block, "set", "$cors", "true"),
        Origins::Listed(listed) => {
            for pattern in patterns(listed) {
                let mut yes = Block::default();
                put!(yes, "set", "$cors", "true");
                let pattern = Word::plain(pattern);
                block.open("if", words!["(", "$http_origin", "~*", pattern, ")"], yes);
            }
        }
    }
    let mut preflight = Block::default();
    put!(preflight, "set", "$cors", "${cors}options");
    block.open("if", words!["(", "$request_method", "=", "OPTIONS", ")"], preflight);
    let mut answer = told(policy);
    put!(answer, "return", 204_u16);
    block.open("if", words!["(", "$cors", "=", "trueoptions", ")"], answer);
    block.append(of_answer(policy));
    block
}

/// Patterns of all origins, many in one: nginx makes a location of each `if`.
fn patterns(listed: &[AllowedOrigin]) -> Vec<String> {
    let mut patterns: Vec<String> = Vec::new();
    for allowed in listed {
        let pattern = allowed.pattern();
        match patterns.last_mut() {
            Some(last) if last.len() + pattern.len() < TOGETHER => {
                last.push('|');
                last.push_str(&pattern);
            }
            _ => patterns.push(pattern),
        }
    }
    patterns
}

/// What answers say to allowed origins, once `$cors` is known.
pub(in crate::conf) fn of_answer(policy: &Cors) -> Block {
    let mut block = Block::default();
    block.open("if", words!["(", "$cors", "=", "true", ")"], told(policy));
    block
}

fn told(policy: &Cors) -> Block {
    let Cors { origins, credentials, methods, headers, expose, max_age } = policy;
    let origin = match origins {
        Origins::Any => Word::from("*"),
        Origins::Listed(_) => Word::from("$http_origin"),
    };
    let mut told = Block::default();
    let mut tell = |name: &'static str, value: Word| {
        put!(told, "more_set_headers", Word::from(name).then(": ").then(value));
    };
    tell("Access-Control-Allow-Origin", origin);
    if *credentials {
        tell("Access-Control-Allow-Credentials", "true".into());
    }
    tell("Access-Control-Allow-Methods", Word::literal(methods));
    tell("Access-Control-Allow-Headers", Word::literal(headers));
    if let Some(expose) = expose {
        tell("Access-Control-Expose-Headers", Word::literal(expose));
    }
    tell("Access-Control-Max-Age", (*max_age).into());
    told
}

#[cfg(test)]
mod tests {
    use super::patterns;
    use model::policy::AllowedOrigin;

    #[test]
    fn a_thousand_origins_are_a_few_patterns_and_one_is_its_own() {
        let origin = |number| AllowedOrigin::new(&format!("https://*.shop-{number}.test"));
        let all: Vec<_> = (0..1000).map(origin).collect();
        let patterns_of_all = patterns(&all);
        assert!(patterns_of_all.len() < 60, "{}", patterns_of_all.len());
        let each = |pattern: &String| pattern.split('|').map(str::to_owned).collect::<Vec<_>>();
        let back: Vec<String> = patterns_of_all.iter().flat_map(each).collect();
        assert_eq!(back, all.iter().map(AllowedOrigin::pattern).collect::<Vec<_>>());
        assert_eq!(patterns(&all[..1]), [all[0].pattern()]);
    }
}
