//! Order flow: recorded days (LOBSTER, ITCH) and seeded synthetic flow.
