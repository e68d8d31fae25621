//! The one program in Lua that is understood: the recipe of oauth2-proxy for sessions whose cookies come in parts.
//! nginx makes one line of all cookies that an authenticator sets, of which browsers take the first, and the program
//! says the second one itself. Here each cookie then has a line of its own, which is what the program is for.

/// `if ngx.var.NAME ~= "" then ngx.header["Set-Cookie"] = … end`: the variable that it looks at.
pub(super) fn second_cookie(program: &str) -> Option<String> {
    let words = words(program)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let head = ["if", "ngx", ".", "var", "."];
    let (name, rest) = words.strip_prefix(&head[..])?.split_first()?;
    let then = ["~=", "\"", "then", "ngx", ".", "header", "[", "\"Set-Cookie", "]", "="];
    let said = rest.strip_prefix(&then[..])?.strip_suffix(&["end"][..])?;
    let variable = |name| ["ngx", ".", "var", ".", name];
    let attributes = [":", "match", "(", "\"(; .*)", ")"];
    // Its name, its value, and the attributes of the first one; or the first one, and the attributes of this one.
    let named = [&variable(name)[..], &[".."], &variable("auth_cookie"), &attributes].concat();
    let behind = [&variable("auth_cookie")[..], &[".."], &variable(name), &attributes].concat();
    let is_named = match said {
        [text, "..", value @ ..] => is_beginning(text) && value == named,
        _ => false,
    };
    (is_named || said == behind).then(|| (*name).to_owned())
}

/// Whether a text is `"name=`.
fn is_beginning(text: &str) -> bool {
    let name = text.strip_prefix('"').and_then(|text| text.strip_suffix('='));
    name.is_some_and(crate::read::is_token)
}

/// The words of a program; texts with a quote in front, whichever they have around them.
fn words(program: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = program.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            '-' if rest.starts_with("--") && !rest.starts_with("--[") => {
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
                continue;
            }
            '"' | '\'' => {
                let (text, behind) = rest[1..].split_once(first)?;
                if text.contains(['\\', '\n']) {
                    return None;
                }
                words.push(format!("\"{text}"));
                rest = behind.trim_start();
                continue;
            }
            first if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("..") || rest.starts_with("~=") => 2,
            '.' | '[' | ']' | '(' | ')' | ':' | '=' => 1,
            _ => return None,
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::second_cookie;

    #[test]
    fn the_recipe_is_known_however_it_is_laid_out_and_nothing_else_is() {
        let named = "if ngx.var.n_1 ~= \"\" then
            -- the second part
            ngx.header['Set-Cookie'] = \"_oauth2_proxy_1=\" .. ngx.var.n_1 .. ngx.var.auth_cookie:match(\"(; .*)\")
          end";
        let behind = "if ngx.var.n_1~='' then ngx.header[\"Set-Cookie\"]=ngx.var.auth_cookie..ngx.var.n_1:match('(; .*)') end";
        for program in [named, behind] {
            assert_eq!(second_cookie(program).as_deref(), Some("n_1"), "{program}");
        }
        for program in [
            "",
            "ngx.exit(403)",
            &named.replace("n_1 ~=", "n_2 ~="),
            &named.replace("Set-Cookie", "X-Cookie"),
            &named.replace("end", "ngx.exit(403) end"),
            &behind.replace(" end", " else ngx.exit(403) end"),
            &behind.replace("(; .*)", "(.*)"),
            &named.replace("_oauth2_proxy_1=", "a; b="),
            &format!("{behind} {behind}"),
            &format!("ngx.exit(403) {behind}"),
        ] {
            assert_eq!(second_cookie(program), None, "{program}");
        }
    }
}
