//! An execution venue's rules: conform, execute, resynchronise.
