//! The Responses API of OpenAI, and of servers that speak it.

mod bench;

mod begin;
mod cuts;
mod faults;
mod refusals;
mod report;
mod resume;
mod scenarios;
mod secrets;
mod stop;
