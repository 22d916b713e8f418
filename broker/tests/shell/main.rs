//! The broker as others meet it: real nodes on loopback, the operator's socket, the program itself.
//! The rules of the market have their own tests beside them.

mod fake;

mod commands;
mod flood;
mod operator;
mod refusals;
mod rental;
mod several;
