//! The journal: what survives, what is found out, what is refused.

mod crash;
mod damage;
mod reading;
mod schema;
mod script;
