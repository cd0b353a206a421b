//! No statement walks through all jobs.
