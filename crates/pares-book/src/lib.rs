//! Order book and matching.
