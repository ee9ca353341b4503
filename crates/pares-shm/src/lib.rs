//! Memory shared between processes: mappings, window, bells, counters.
