//! The whole system in one thread, virtual time, seeded faults.
