//! The body of a submit: what an ask means in the vendor's words.

use outlast_core::rules::job_of_key;
use outlast_core::{Message, ResearchRequest, Role};
use serde_json::{Value, json};

/// The label with our job's id, for a person who looks for the run of a job at the vendor.
const JOB_LABEL: &str = "outlast_job";

/// The body of a submit to this agent.
pub(in crate::gemini) fn submit(ask: &ResearchRequest, agent: &str, key: &str) -> Value {
    let mut body = json!({
        "agent": agent,
        "input": input(&ask.messages),
        "background": true,
        "store": true,
        "agent_config": {
            "type": "deep-research",
            "thinking_summaries": "auto",
            // A plan that waits for a person's approval would never be executed.
            "collaborative_planning": false,
            "visualization": "off",
        },
    });
    if let Some(job) = job_of_key(key) {
        body["labels"] = json!({JOB_LABEL: job.to_string()});
    }
    body
}

/// The conversation as one text: instructions first, then earlier turns, then the question. A question alone is
/// passed on as it is.
fn input(messages: &[Message]) -> String {
    if let [Message { role: Role::User, content }] = messages {
        return content.clone();
    }
    let (system, said): (Vec<&Message>, Vec<&Message>) =
        messages.iter().partition(|message| message.role == Role::System);
    let mut parts: Vec<String> = system.iter().map(|message| message.content.clone()).collect();
    if let Some((question, earlier)) = said.split_last() {
        if !earlier.is_empty() {
            parts.push("What was said before:".to_owned());
            parts.extend(earlier.iter().map(|message| turn(message)));
            parts.push("The question now:".to_owned());
        }
        parts.push(question.content.clone());
    }
    parts.join("\n\n")
}

fn turn(message: &Message) -> String {
    let who = match message.role {
        Role::System => "Instructions",
        Role::User => "User",
        Role::Assistant => "Assistant",
    };
    format!("{who}: {}", message.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(messages: &[(Role, &str)]) -> ResearchRequest {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() });
        ResearchRequest { messages: messages.collect(), ..ResearchRequest::default() }
    }

    /// G3: in the background, stored, summaries of thoughts on.
    #[test]
    fn g3_a_submit_runs_in_the_background_with_the_id_of_its_job() {
        let job = "0123456789abcdef0123456789abcdef";
        let body = submit(&ask(&[(Role::User, " why? \n")]), "agent-7", &format!("{job}-0"));
        assert_eq!(
            body,
            json!({
                "agent": "agent-7", "input": " why? \n", "background": true, "store": true,
                "agent_config": {"type": "deep-research", "thinking_summaries": "auto",
                    "collaborative_planning": false, "visualization": "off"},
                "labels": {"outlast_job": job},
            })
        );
        assert!(submit(&ask(&[(Role::User, "q")]), "a", "not our key").get("labels").is_none());
    }

    /// G3: earlier turns are sent as text.
    #[test]
    fn g3_a_conversation_is_one_text_that_ends_with_the_question() {
        let talk = [
            (Role::System, "be brief"),
            (Role::User, "a"),
            (Role::Assistant, "b"),
            (Role::User, "c"),
        ];
        assert_eq!(
            input(&ask(&talk).messages),
            "be brief\n\nWhat was said before:\n\nUser: a\n\nAssistant: b\n\nThe question now:\n\nc"
        );
        let told = ask(&[(Role::System, "be brief"), (Role::User, "c")]);
        assert_eq!(input(&told.messages), "be brief\n\nc");
        assert_eq!(input(&[]), "");
    }
}
