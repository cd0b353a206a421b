//! The worker's side of `outlast ask` (M4): a question of a command is a step whose output is the answer. The command waits
//! in its run.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_core::{Answer, NewQuestion, QuestionState, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;

use super::step_protocol::{AskRequest, StepReply, StepRequest, write_message};
use super::steps::{NotRun, RunSteps, STORE_PAUSE, reply};

/// The exit code of the step of a question that nobody has answered.
const NOT_ANSWERED: i32 = 1;
/// The digits of the digest in the name of a question.
const NAME_DIGITS: usize = 16;
const NAME_PREFIX: &str = "ask:";

/// Returns whether a step with this name is the question of a command.
pub fn is_question_step(name: &str) -> bool {
    let digits = name.strip_prefix(NAME_PREFIX).unwrap_or_default();
    digits.len() == NAME_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl AskRequest {
    /// Returns the step of the question: the same text with the same choices is the same question.
    pub(super) fn step(&self) -> StepRequest {
        let mut digest = Sha256::new();
        for part in std::iter::once(&self.ask).chain(&self.choices) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        // Asking again is harmless: the question is found.
        StepRequest {
            name: format!("{NAME_PREFIX}{}", &digest[..NAME_DIGITS]),
            digest,
            rerun: true,
        }
    }

    fn question(&self, key: &str) -> NewQuestion {
        NewQuestion {
            key: key.to_owned(),
            text: self.ask.clone(),
            choices: self.choices.clone(),
            default: self.default.clone(),
            timeout: self.timeout_ms.map_or(NewQuestion::TIMEOUT, Duration::from_millis),
        }
    }
}

impl RunSteps {
    /// Asks the owner of the job, once all earlier questions of the run are answered, and records the answer as the output
    /// of the step with this key.
    pub(super) async fn ask(
        &self,
        stream: &mut BufReader<UnixStream>,
        request: &AskRequest,
        key: &str,
    ) -> io::Result<()> {
        let question = request.question(key);
        let _asks = self.asks.read().await;
        let mut byte = [0; 1];
        let answered = tokio::select! {
            answered = self.wait_for_answer(&question) => answered,
            // The command, or its `outlast ask`, has ended: nobody waits for the answer any more.
            _ = stream.read(&mut byte) => return self.withdraw(key).await,
            () = self.ended() => return self.withdraw(key).await,
        };
        let recorded = match answered {
            Ok(Some(answer)) => {
                self.end(key, 0, answer.text.as_bytes()).await.map(|()| Some(answer.text))
            }
            Ok(None) => self.end(key, NOT_ANSWERED, b"").await.map(|()| None),
            Err(error) => Err(error),
        };
        if recorded.is_ok() {
            self.close(key).await;
        }
        match recorded {
            Ok(Some(text)) => reply(stream, NotRun::Done(text.into_bytes())).await,
            Ok(None) => {
                self.not_answered.store(true, Ordering::Release);
                write_message(stream, &StepReply::NotAnswered, b"").await
            }
            Err(error) => reply(stream, error.into()).await,
        }
    }

    async fn wait_for_answer(&self, question: &NewQuestion) -> Result<Option<Answer>, StoreError> {
        // A job has one open question at a time.
        let _turn = self.asking.lock().await;
        loop {
            match self.journal.wait_for_answer(question).await {
                Ok(QuestionState::Answered(answer)) => return Ok(Some(answer)),
                Ok(QuestionState::NotAnswered) => return Ok(None),
                // An open question is waited for.
                Ok(QuestionState::Open)
                | Err(StoreError::Unconfirmed(_) | StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Withdraws the question. An answer that came before counts: it is recorded for the next run of the command.
    async fn withdraw(&self, key: &str) -> io::Result<()> {
        let answered = match self.journal.withdraw_question(key).await {
            Ok(Some(answer)) => self.end(key, 0, answer.text.as_bytes()).await.map(|()| true),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        match answered {
            Ok(true) => self.close(key).await,
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "failed to withdraw a question"),
        }
        Ok(())
    }

    /// Waits for the end of the command.
    async fn ended(&self) {
        if self.ending.subscribe().wait_for(|has_ended| *has_ended).await.is_err() {
            std::future::pending().await
        }
    }

    /// Removes the question with its answer. One that stays is replaced by the next question, or removed with the end of
    /// the job.
    async fn close(&self, key: &str) {
        if let Err(error) = self.journal.close_question(key).await {
            tracing::debug!(%error, "failed to remove a question");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M4: the name of a question depends on its text and its choices alone.
    #[test]
    fn m4_a_question_is_recognized_by_its_text_and_its_choices() {
        let ask = |text: &str, choices: &[&str]| AskRequest {
            ask: text.to_owned(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            default: None,
            timeout_ms: None,
        };
        let deploy = ask("Deploy?", &["yes", "no"]).step();
        let later = AskRequest { timeout_ms: Some(1), ..ask("Deploy?", &["yes", "no"]) };
        assert_eq!(later.step(), deploy);
        assert_ne!(ask("Deploy?", &[]).step().name, deploy.name);
        assert_ne!(ask("Delete?", &["yes", "no"]).step().name, deploy.name);
        assert!(super::super::is_step_name(&deploy.name));
        assert!(is_question_step(&deploy.name));
        for other in ["ask:", "ask:me", "deploy", &deploy.name[4..]] {
            assert!(!is_question_step(other), "{other}");
        }
    }
}
