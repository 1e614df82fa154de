//! Faults, placed exactly: the real binary is killed, stopped and cut off under load, and each
//! scenario ends in the audit of what its buyers were told.
