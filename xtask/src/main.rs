//! Set-up, tests and tidiness checks.
fn main() {}
