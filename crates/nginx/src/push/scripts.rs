//! The Lua modules, which are part of the binary.

use std::io;
use std::path::Path;

macro_rules! scripts {
    ($($name:literal)*) => {
        /// File names with what is in them.
        const SCRIPTS: &[(&str, &str)] = &[
            $((concat!($name, ".lua"), include_str!(concat!("../../lua/fairway/", $name, ".lua"))),)*
        ];
    };
}

scripts! {
    "answer" "balancer" "canary" "certificate" "certificates" "chash" "chashsubset" "control" "digest" "error_page"
    "ewma" "expression" "lookup" "measurements" "ocsp" "pushed" "request" "round_robin" "routes" "session_cookie" "settings"
    "start" "sticky" "store" "upstreams"
}

/// Writes the modules to `folder`/fairway, so that `lua_package_path "<folder>/?.lua;;"` finds them.
pub fn write_scripts(folder: &Path) -> io::Result<()> {
    let folder = folder.join("fairway");
    std::fs::create_dir_all(&folder)?;
    SCRIPTS.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

#[cfg(test)]
mod tests {
    use super::SCRIPTS;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn no_module_is_left_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/fairway");
        let files = std::fs::read_dir(folder).expect("the modules are there");
        let there: BTreeSet<String> = files
            .map(|file| file.expect("a file").file_name().into_string().expect("a name"))
            .collect();
        let written: BTreeSet<String> =
            SCRIPTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, written);
    }
}
