//! The page itself: plain HTML, a style sheet and modules, as they are in this program.

use runtime::admin::{Admin, Page};

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// What there is, by its path.
const FILES: &[(&str, &str, &str)] = &[
    ("/ui", HTML, include_str!("../ui/index.html")),
    ("/ui/style.css", STYLE, include_str!("../ui/style.css")),
    ("/ui/icon.svg", ICON, include_str!("../ui/icon.svg")),
    ("/ui/main.js", SCRIPT, include_str!("../ui/main.js")),
    ("/ui/api.js", SCRIPT, include_str!("../ui/api.js")),
    ("/ui/dom.js", SCRIPT, include_str!("../ui/dom.js")),
    ("/ui/list.js", SCRIPT, include_str!("../ui/list.js")),
    ("/ui/overview.js", SCRIPT, include_str!("../ui/overview.js")),
    ("/ui/routes.js", SCRIPT, include_str!("../ui/routes.js")),
    ("/ui/problems.js", SCRIPT, include_str!("../ui/problems.js")),
    ("/ui/certificates.js", SCRIPT, include_str!("../ui/certificates.js")),
    ("/ui/changes.js", SCRIPT, include_str!("../ui/changes.js")),
    ("/ui/limits.js", SCRIPT, include_str!("../ui/limits.js")),
    ("/ui/explain.js", SCRIPT, include_str!("../ui/explain.js")),
];

/// Adds them, and an index for people at `/` unless health is asked for there.
pub(crate) fn pages(mut admin: Admin, for_all: bool) -> Admin {
    for (path, kind, text) in FILES {
        let page = || Page::of_type(kind, *text);
        admin = if for_all {
            admin.page(*path, page)
        } else {
            admin.near(*path, move |_| std::future::ready(page()))
        };
    }
    if !admin.has("/") {
        admin = admin.page("/", || Page::of_type(HTML, include_str!("../ui/home.html")));
    }
    if !admin.has("/style.css") {
        admin = admin.page("/style.css", || Page::of_type(STYLE, include_str!("../ui/style.css")));
    }
    admin
}
