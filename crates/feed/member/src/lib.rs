//! A member server.
