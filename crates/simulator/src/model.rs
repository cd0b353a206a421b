//! A scripted language model behind the chat interface of OpenAI, with the extras of llama.cpp, vLLM and Ollama.
//!
//! The answer is a function of the request body, never of a count, so that a client that asks the same question
//! twice gets the same answer twice.

mod answer;
mod dialect;
mod prompt;
mod spoil;
mod tokens;

pub(crate) use dialect::router;
