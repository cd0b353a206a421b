//! `outlast ask`: a workflow command asks its owner, and waits for the answer (M4). Like `outlast step`, it asks the worker
//! that runs the command.

use std::process::ExitCode;

use outlast_provider::command::{AskRequest, MAX_ASK_BYTES, StepReply, read_bytes};

use super::step::{ask, connect, find_worker, gone};
use crate::cli::AskArgs;
use crate::error::{CommandError, CommandResult, refuse};
use crate::ui;

pub(super) async fn run(args: AskArgs) -> CommandResult {
    let AskArgs { text, choices, default, timeout } = args;
    let socket = find_worker("outlast ask", &text)?;
    if text.trim().is_empty() {
        return refuse("the question is empty", "outlast ask 'Deploy?' --choices yes,no");
    }
    let choices: Vec<String> = choices.iter().map(|choice| choice.trim().to_owned()).collect();
    if text.len() + choices.iter().map(String::len).sum::<usize>() > MAX_ASK_BYTES {
        let hint = "ask in short, and write the details to a file that the question names";
        return refuse(format!("a question has at most {MAX_ASK_BYTES} bytes"), hint);
    }
    if choices.iter().any(String::is_empty) {
        return refuse("a choice is empty", "separate the choices by commas: --choices yes,no");
    }
    if let Some(default) = &default
        && !choices.is_empty()
        && !choices.contains(default)
    {
        let why = format!("the default `{}` is not one of the choices", ui::short(default, 64));
        return refuse(why, format!("the choices are: {}", choices.join(", ")));
    }
    let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    let mut worker = connect(&socket)?;
    let request = AskRequest { ask: text, choices, default, timeout_ms };
    match ask(&mut worker, &request).await? {
        StepReply::Done { bytes } => {
            let answer = read_bytes(&mut worker, bytes).await.map_err(|_| gone())?;
            ui::raw(&answer);
            ui::raw(b"\n");
            Ok(ExitCode::SUCCESS)
        }
        StepReply::NotAnswered => Err(CommandError::failed(
            "nobody has answered the question before its deadline",
            "--default gives the answer that is used then",
        )),
        StepReply::Refused { why, hint } => Err(CommandError::failed(why, hint)),
        StepReply::Run | StepReply::Recorded | StepReply::Gone => Err(gone()),
    }
}
