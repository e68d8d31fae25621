//! meanings.
