//! The commit that a build knows itself by.

#[path = "../../build.rs"]
#[expect(dead_code, reason = "Cargo runs what is not asked here")]
mod build;

use build::Head;
use std::fs;
use std::path::Path;

/// Writes a file, with its folders.
fn write(root: &Path, file: &str, text: &str) {
    let file = root.join(file);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
}

/// The commit as one letter, and the files that say when it is another one.
fn told(root: &Path) -> Option<(Option<char>, Vec<String>)> {
    let head = Head::of(root)?;
    let letter = head.commit.and_then(|commit| {
        assert_eq!(commit.len(), 40);
        commit.chars().next()
    });
    let name = |file: &Path| file.file_name().expect("a file").to_string_lossy().into_owned();
    Some((letter, head.files.iter().map(|file| name(file)).collect()))
}

#[test]
fn a_build_finds_its_commit_wherever_git_keeps_it_and_follows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let commit = |letter: &str| letter.repeat(40);
    let (tree, beside) = (folder.path().join("tree"), folder.path().join("beside"));
    fs::create_dir_all(&tree).expect("a folder");
    let of = |letter: char, files: &[&str]| {
        Some((Some(letter), files.iter().map(ToString::to_string).collect::<Vec<_>>()))
    };
    // A tarball in somebody else's clone has no commit.
    write(folder.path(), ".git/HEAD", &commit("9"));
    assert!(told(&tree).is_none());
    write(&tree, ".git/HEAD", "ref: refs/heads/main\n");
    let packed = format!("# pack\n{} refs/heads/a/refs/heads/main\n", commit("c"));
    let packed = format!("{packed}{} refs/heads/main\n^{}\n", commit("b"), commit("d"));
    write(&tree, ".git/packed-refs", &packed);
    assert_eq!(told(&tree), of('b', &["HEAD", "packed-refs", "HEAD"]));
    write(&tree, ".git/refs/heads/main", &format!("{}\n", commit("a")));
    assert_eq!(told(&tree), of('a', &["HEAD", "main"]));
    // A work tree beside it has its own HEAD, and the branches of the clone.
    let own = tree.join(".git/worktrees/beside");
    write(&beside, ".git", &format!("gitdir: {}\n", own.display()));
    write(&own, "HEAD", "ref: refs/heads/main\n");
    write(&own, "commondir", "../..\n");
    assert_eq!(told(&beside), of('a', &["HEAD", "main"]));
    write(&own, "HEAD", &format!("{}\n", commit("e")));
    assert_eq!(told(&beside), of('e', &["HEAD"]));
    // What is no commit is not told as one.
    write(&own, "HEAD", "ref: refs/heads/.invalid\n");
    assert_eq!(told(&beside).expect("a HEAD").0, None);
}
