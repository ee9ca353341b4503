//! The window: agreeing on the total order.
