//! What this program is: `--version`.

/// What ingress-nginx's banner says, of Fairway.
pub(crate) fn banner() -> String {
    let rule = "-".repeat(79);
    format!(
        "{rule}\nFairway ingress controller\n  Release:       v{}\n  Build:         {}\n  Repository:    {}\n  \
         Stands in for: ingress-nginx v1.15.1\n{rule}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("FAIRWAY_COMMIT").unwrap_or("unknown"),
        option_env!("FAIRWAY_REPOSITORY").unwrap_or("unknown"),
    )
}

/// In one word.
pub(crate) fn short() -> String {
    let commit = option_env!("FAIRWAY_COMMIT").unwrap_or("unknown commit");
    format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
}
