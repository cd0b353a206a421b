//! Notifies of the ends of jobs: to a command of the operator's, or to an address, signed.

mod command;
mod webhook;

pub use command::{NotifyCommand, NotifyCommandOptions};
pub use webhook::{Webhook, WebhookOptions};

use outlast_core::NotDelivered;

fn not_delivered(why: impl Into<String>) -> NotDelivered {
    NotDelivered { why: why.into(), detail: None }
}
