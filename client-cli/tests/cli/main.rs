//! The built program from outside: its words, exit codes and files, alone and with brokers that do as a test
//! says.

mod brokers;
mod command_line;
mod estimate;
mod market;
mod orders;
mod program;
mod registry;
mod several;
mod terminal;
