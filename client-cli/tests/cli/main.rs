//! The built program from outside: its words, exit codes and files, alone and with brokers that do as a test
//! says.

mod brokers;
mod changes;
mod command_line;
mod estimate;
mod kinds;
mod market;
mod numbers;
mod orders;
mod program;
mod registry;
mod several;
mod terminal;
