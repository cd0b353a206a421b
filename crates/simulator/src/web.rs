//! A small web for researchers: pages on several loopback addresses, and a SearXNG that finds them.

pub(crate) mod corpus;
mod facts;
mod attacks;
mod html;
mod pdf;
pub(crate) mod pages;
pub(crate) mod searxng;
