"""Google's own SDK (google-genai 3.1.0) reads what the simulator says of Gemini's Interactions API.

Given the simulator's address, prints a line for each check; exits 1 when one fails. The SDK's types are the vendor's: an answer that they do not know is an error here. What they take for something unknown
in an open set is an error too.
"""

import sys
import time
import warnings

from google import genai
from google.genai import types

AGENT = "deep-research-preview-04-2026"
ENDS = {"completed", "failed", "cancelled", "incomplete", "budget_exceeded", "requires_action", "requires_continuation"}
LIMIT_SECONDS = 60


def client(url: str, key: str = "test-key") -> genai.Client:
    # Retries would hide what a single answer says, and pay twice.
    retries = types.HttpRetryOptions(attempts=1)
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url, retry_options=retries))


def begin(api: genai.Client, question: str, **more):
    return api.interactions.create(
        agent=AGENT,
        input=question,
        background=True,
        store=True,
        agent_config={"type": "deep-research", "thinking_summaries": "auto", "visualization": "off"},
        labels={"outlast_job": "0123456789abcdef0123456789abcdef"},
        **more,
    )


def known(value, where: str) -> None:
    """Nothing in it is a variant that the SDK does not recognise."""
    if getattr(value, "is_unknown", False):
        raise AssertionError(f"{where}: the SDK does not know {value!r}")
    fields = getattr(type(value), "model_fields", None)
    if fields is not None:
        # To look at a field that the SDK is about to drop is a warning, and so an error here.
        for name in (name for name, field in fields.items() if not field.deprecated):
            known(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            known(item, f"{where}[{index}]")


def end(api: genai.Client, identifier: str):
    limit = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < limit:
        interaction = api.interactions.get(identifier)
        known(interaction, "interaction")
        if interaction.status in ENDS:
            return interaction
        time.sleep(0.05)
    raise AssertionError(f"{identifier} did not end in {LIMIT_SECONDS} s")


def completed(api: genai.Client) -> None:
    begun = begin(api, "How do heat pumps age? [[sim:ok;words=200]]")
    known(begun, "begun")
    assert begun.id and begun.status == "in_progress", begun
    done = end(api, begun.id)
    assert done.status == "completed" and done.agent == AGENT, done.status
    assert done.created and done.updated
    assert len(done.output_text.split()) > 100, done.output_text
    kinds = {step.type for step in done.steps}
    assert {"thought", "google_search_call", "url_context_result", "model_output"} <= kinds, kinds
    text = done.steps[-1].content[0]
    encoded = text.text.encode()
    assert text.annotations
    for annotation in text.annotations:
        assert annotation.type == "url_citation" and annotation.url and annotation.title, annotation
        covered = encoded[annotation.start_index : annotation.end_index].decode()
        assert covered.startswith("[") and covered.endswith("]"), covered
    usage = done.usage
    assert usage.total_tokens > 0 and usage.total_thought_tokens > 0
    assert usage.grounding_tool_count[0].type == "google_search" and usage.grounding_tool_count[0].count > 0


def streamed(api: genai.Client) -> None:
    begun = begin(api, "What do tides do? [[sim:ok;words=100]]")
    written, seen, last = "", [], None
    for event in api.interactions.get(begun.id, stream=True):
        known(event, "event")
        seen.append(event.event_type)
        if event.event_type == "step.delta" and event.delta.type == "text":
            written += event.delta.text
        last = event
    assert seen[0] == "interaction.created" and seen[-1] == "interaction.completed", seen
    assert last.interaction.id == begun.id and last.interaction.status == "completed", last
    assert written == end(api, begun.id).output_text
    again = [event.event_type for event in api.interactions.get(begun.id, stream=True, last_event_id=last.event_id)]
    assert again == [], again


def ends(api: genai.Client) -> None:
    failed = end(api, begin(api, "fails [[sim:fail;code=internal;delay_ms=0]]").id)
    assert failed.status == "failed" and failed.errors[0].message, failed
    for reason in ["incomplete", "budget_exceeded", "requires_continuation"]:
        cut = end(api, begin(api, f"{reason} [[sim:incomplete;reason={reason};delay_ms=0]]").id)
        assert cut.status == reason and cut.output_text, cut.status
    asked = end(api, begin(api, "acts [[sim:requires_action;delay_ms=0]]").id)
    assert asked.status == "requires_action", asked.status


def cancelled_and_deleted(api: genai.Client) -> None:
    begun = begin(api, "stuck [[sim:stuck]]")
    known(api.interactions.cancel(begun.id), "cancelled")
    assert end(api, begun.id).status == "cancelled"
    api.interactions.delete(begun.id)
    refused(lambda: api.interactions.get(begun.id), 404)


def refused(call, status: int) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the SDK has several families of errors; the status is what counts
        code = getattr(error, "status_code", None) or getattr(error, "code", None)
        assert code == status, f"{code} in place of {status}: {error!r}"
        return
    raise AssertionError(f"no {status}")


def refusals(url: str) -> None:
    api = client(url)
    refused(lambda: begin(client(url, "a-wrong-key"), "q"), 400)
    refused(lambda: begin(api, "q [[sim:http;status=403]]"), 403)
    refused(lambda: begin(api, "q [[sim:quota]]"), 402)
    refused(lambda: api.interactions.create(agent="deep-thought", input="q", background=True), 404)
    names = [model.name for model in api.models.list()]
    assert f"models/{AGENT}" in names, names


def main() -> None:
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*experimental.*")
    url = f"{sys.argv[1]}/gemini"
    api = client(url)
    failed = 0
    for check in [completed, streamed, ends, cancelled_and_deleted, refusals]:
        try:
            check(url if check is refusals else api)
            print(f"gemini\t{check.__name__}\tok")
        except Exception as error:  # noqa: BLE001 - every failure is a line, whatever it is
            failed += 1
            print(f"gemini\t{check.__name__}\tFAIL\t{type(error).__name__}: {error}")
    print(f"google-genai {genai.__version__}: {failed} failed", file=sys.stderr)
    sys.exit(failed > 0)


main()
