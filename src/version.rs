//! What this program is: `fairway version` and `--version`.

/// The commit that it was built from, as far as `build.rs` knows.
pub(crate) const COMMIT: Option<&str> = match option_env!("FAIRWAY_COMMIT") {
    Some(known) if !known.is_empty() => Some(known),
    Some(_) | None => None,
};

/// Where its source is, as far as whoever built it says so.
pub(crate) const REPOSITORY: Option<&str> = match option_env!("FAIRWAY_REPOSITORY") {
    Some(known) if !known.is_empty() => Some(known),
    Some(_) | None => None,
};

/// What ingress-nginx's banner says, of Fairway.
pub(crate) fn banner() -> String {
    let rule = "-".repeat(79);
    format!(
        "{rule}\nFairway ingress controller\n  Release:       v{}\n  Build:         {}\n  Repository:    {}\n  \
         Stands in for: ingress-nginx v1.15.1\n{rule}\n",
        env!("CARGO_PKG_VERSION"),
        COMMIT.unwrap_or("unknown"),
        REPOSITORY.unwrap_or("unknown"),
    )
}

/// In one word.
pub(crate) fn short() -> String {
    let unknown = if cfg!(debug_assertions) { "debug build" } else { "unknown commit" };
    let commit = COMMIT.unwrap_or(unknown);
    format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
}
