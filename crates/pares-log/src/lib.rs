//! The mapped log: journal and bus in one.
