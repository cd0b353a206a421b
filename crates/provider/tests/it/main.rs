//! The adapters over real HTTP: against the simulator, and against servers that no simulator should be.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod canned;

#[cfg(test)]
mod fault_table;

#[cfg(test)]
mod begin;
#[cfg(test)]
mod cancel_answers;
#[cfg(test)]
mod check;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod strange;

#[cfg(test)]
mod anthropic;
#[cfg(test)]
mod sonar;

#[cfg(test)]
mod openai;
#[cfg(test)]
mod gemini;
