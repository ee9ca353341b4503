//! Every message once: fixed byte layouts.
