//! The media type of answers that snippets make: by the path's extension, else `default_type` (nginx's mime.types, as
//! ingress-nginx includes them).

use model::snippet::Answers;

/// What nginx's http level says in ingress-nginx.
const DEFAULT: &str = "text/html";

/// The type of an answer to `path`; empty for none.
pub(crate) fn of<'a>(settings: Option<&'a Answers>, path: &[u8]) -> &'a str {
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
            TYPES.iter().find(is).map(|(media, _)| *media)
        }
    });
    let default = settings.and_then(|own| own.default_type.as_deref());
    known.or(default).unwrap_or(DEFAULT)
}

/// Types and their extensions.
const TYPES: &[(&str, &str)] = &[
    ("text/html", "html htm shtml"),
    ("text/css", "css"),
    ("text/xml", "xml"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpeg jpg"),
    ("application/javascript", "js"),
    ("application/atom+xml", "atom"),
    ("application/rss+xml", "rss"),
    ("text/mathml", "mml"),
    ("text/plain", "txt"),
    ("text/vnd.sun.j2me.app-descriptor", "jad"),
    ("text/vnd.wap.wml", "wml"),
    ("text/x-component", "htc"),
    ("image/avif", "avif"),
    ("image/png", "png"),
    ("image/svg+xml", "svg svgz"),
    ("image/tiff", "tif tiff"),
    ("image/vnd.wap.wbmp", "wbmp"),
    ("image/webp", "webp"),
    ("image/x-icon", "ico"),
    ("image/x-jng", "jng"),
    ("image/x-ms-bmp", "bmp"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("application/java-archive", "jar war ear"),
    ("application/json", "json"),
    ("application/mac-binhex40", "hqx"),
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/postscript", "ps eps ai"),
    ("application/rtf", "rtf"),
    ("application/vnd.apple.mpegurl", "m3u8"),
    ("application/vnd.google-earth.kml+xml", "kml"),
    ("application/vnd.google-earth.kmz", "kmz"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-fontobject", "eot"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.oasis.opendocument.graphics", "odg"),
    ("application/vnd.oasis.opendocument.presentation", "odp"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.wap.wmlc", "wmlc"),
    ("application/wasm", "wasm"),
    ("application/x-7z-compressed", "7z"),
    ("application/x-cocoa", "cco"),
    ("application/x-java-archive-diff", "jardiff"),
    ("application/x-java-jnlp-file", "jnlp"),
    ("application/x-makeself", "run"),
    ("application/x-perl", "pl pm"),
    ("application/x-pilot", "prc pdb"),
    ("application/x-rar-compressed", "rar"),
    ("application/x-redhat-package-manager", "rpm"),
    ("application/x-sea", "sea"),
    ("application/x-shockwave-flash", "swf"),
    ("application/x-stuffit", "sit"),
    ("application/x-tcl", "tcl tk"),
    ("application/x-x509-ca-cert", "der pem crt"),
    ("application/x-xpinstall", "xpi"),
    ("application/xhtml+xml", "xhtml"),
    ("application/xspf+xml", "xspf"),
    ("application/zip", "zip"),
    ("application/octet-stream", "bin exe dll deb dmg iso img msi msp msm"),
    ("audio/midi", "mid midi kar"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/x-m4a", "m4a"),
    ("audio/x-realaudio", "ra"),
    ("video/3gpp", "3gpp 3gp"),
    ("video/mp2t", "ts"),
    ("video/mp4", "mp4"),
    ("video/mpeg", "mpeg mpg"),
    ("video/quicktime", "mov"),
    ("video/webm", "webm"),
    ("video/x-flv", "flv"),
    ("video/x-m4v", "m4v"),
    ("video/x-mng", "mng"),
    ("video/x-ms-asf", "asx asf"),
    ("video/x-ms-wmv", "wmv"),
    ("video/x-msvideo", "avi"),
];

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
            assert_eq!(of(None, path.as_bytes()), without, "{path}");
            assert_eq!(of(Some(&said), path.as_bytes()), with, "{path}");
        }
    }

    #[test]
    fn own_types_take_the_place_of_all_others() {
        let types = Some(vec![("x".to_owned(), "text/x".to_owned())]);
        let own = Answers { types, ..Answers::default() };
        assert_eq!([of(Some(&own), b"/a.x"), of(Some(&own), b"/a.txt")], ["text/x", "text/html"]);
    }
}
