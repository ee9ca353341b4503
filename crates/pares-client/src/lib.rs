//! Client of the binary order entry protocol.
