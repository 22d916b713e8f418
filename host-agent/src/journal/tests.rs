//! placeholder while the rest is written
