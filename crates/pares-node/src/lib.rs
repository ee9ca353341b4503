//! The roles as processes: rules joined to edges by duty cycles.
