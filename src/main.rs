//! The binary `fairway`: flags in, tasks wired, nothing else.

fn main() {}
