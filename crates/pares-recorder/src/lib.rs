//! A history recorder's rules: accept, deduplicate, quorum.
