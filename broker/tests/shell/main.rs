//! The broker as others meet it: real nodes on loopback, the operator's socket, the program itself.
//! The rules of the market have their own tests beside them.

#[cfg(test)]
mod fake;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod flood;
#[cfg(test)]
mod goals;
#[cfg(test)]
mod logged;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod rental;
#[cfg(test)]
mod restoring;
#[cfg(test)]
mod several;
