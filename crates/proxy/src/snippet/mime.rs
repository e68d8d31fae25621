//! The media type of answers that snippets make: by the path's extension, else `default_type` (nginx's mime.types, as
//! ingress-nginx includes them).

use model::MEDIA_TYPES;
use model::snippet::Answers;

/// What nginx's http level says in ingress-nginx without `default-type`.
const DEFAULT: &str = "text/html";

/// The type of an answer to `path`, where the ConfigMap may say another default; empty for none.
pub(crate) fn of<'a>(
    settings: Option<&'a Answers>,
    of_all: Option<&'a str>,
    path: &[u8],
) -> &'a str {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let extension = name.iter().rposition(|&byte| byte == b'.').map(|dot| &name[dot + 1..]);
    let extension = extension.map(|bytes| String::from_utf8_lossy(bytes).to_ascii_lowercase());
    let known = extension.and_then(|extension| match settings.and_then(|own| own.types.as_ref()) {
        Some(types) => {
            let found = types.iter().find(|(known, _)| *known == extension);
            found.map(|(_, media)| media.as_str())
        }
        None => {
            let is = |row: &&(&str, &str)| row.1.split(' ').any(|known| known == extension);
            MEDIA_TYPES.iter().find(is).map(|(media, _)| *media)
        }
    });
    let default = settings.and_then(|own| own.default_type.as_deref());
    known.or(default).or(of_all).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::of;
    use model::snippet::Answers;

    #[test]
    fn the_extension_decides_and_else_what_is_said() {
        let said = Answers { default_type: Some("text/plain".to_owned()), ..Answers::default() };
        for (path, without, with) in [
            ("/robots.txt", "text/plain", "text/plain"),
            ("/a.b/X.JSON", "application/json", "application/json"),
            ("/a.json/b", "text/html", "text/plain"),
            ("/", "text/html", "text/plain"),
            ("/x.unheard", "text/html", "text/plain"),
        ] {
            assert_eq!(of(None, None, path.as_bytes()), without, "{path}");
            assert_eq!(of(Some(&said), Some("text/x"), path.as_bytes()), with, "{path}");
            let of_all = if without == "text/html" { "text/x" } else { without };
            assert_eq!(of(None, Some("text/x"), path.as_bytes()), of_all, "{path}");
        }
    }

    #[test]
    fn own_types_take_the_place_of_all_others() {
        let types = Some(vec![("x".to_owned(), "text/x".to_owned())]);
        let own = Answers { types, ..Answers::default() };
        let of = |path| of(Some(&own), None, path);
        assert_eq!([of(b"/a.x"), of(b"/a.txt")], ["text/x", "text/html"]);
    }
}
