//! mistakes.
