"""OpenAI's own SDK, strict, on what the simulator answers: every object and event must be one of its types.

Prints a line for each check; exits 1 when one fails."""

import sys
import warnings

import openai
from openai import OpenAI
from openai._models import BaseModel
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

base_url = sys.argv[1] + "/openai/v1"
# The SDK resends what failed by itself; here every answer counts.
client = OpenAI(api_key="sk-interop", base_url=base_url, max_retries=0, timeout=20)
failed = 0


def check(name, works):
    global failed
    try:
        works()
        print(f"openai\t{name}\tok")
    except Exception as error:  # every failure is a line, whatever it is
        failed += 1
        print(f"openai\t{name}\tFAIL\t{type(error).__name__}: {error}")


def strictly(model, value: BaseModel):
    """The SDK takes whatever comes; its types say what should. An unknown field is a failure too."""
    TypeAdapter(model).validate_python(value.to_dict(mode="json"), strict=False)
    unknown = [name for name in (value.model_extra or {})]
    assert not unknown, f"fields the SDK does not know: {unknown}"
    # Values of other types than the model's are warnings when it is written down.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value.model_dump_json()


def begin(scenario, **more):
    arguments = {
        "model": "gpt-6-sol",
        "input": f"How do heat pumps age? [[sim:{scenario}]]",
        "background": True,
        "store": True,
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"],
        "max_tool_calls": 30,
        "reasoning": {"effort": "medium"},
        "metadata": {"outlast_job": "7"},
    }
    return client.responses.create(**{**arguments, **more})


def ended(scenario, **more):
    run = begin(scenario + ";delay_ms=0", **more)
    strictly(Response, run)
    assert run.status == "queued", run.status
    run = client.responses.retrieve(run.id)
    strictly(Response, run)
    return run


def completed():
    run = ended("ok;sources=6")
    assert run.status == "completed" and run.metadata == {"outlast_job": "7"}, run
    assert len(run.output_text.split()) > 100
    content = run.output[-1].content[0]
    assert len(content.annotations) >= 6, content.annotations
    for citation in content.annotations:
        shown = content.text[citation.start_index : citation.end_index]
        assert citation.type == "url_citation" and shown.endswith(f"({citation.url}))"), shown
    calls = [item for item in run.output if item.type == "web_search_call"]
    assert {call.action.type for call in calls} == {"search", "open_page"}
    assert run.usage.input_tokens > 0 and run.tool_usage.web_search.num_requests == 4


def streamed():
    run = begin("ok")
    seen = []
    for event in client.responses.retrieve(run.id, stream=True, starting_after=0):
        strictly(ResponseStreamEvent, event)
        seen.append(event)
    assert [event.sequence_number for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].type == "response.completed", seen[-1].type
    text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    assert text == seen[-1].response.output_text == client.responses.retrieve(run.id).output_text
    # After a break, from where it broke off.
    later = list(client.responses.retrieve(run.id, stream=True, starting_after=seen[9].sequence_number))
    assert [event.type for event in later] == [event.type for event in seen[10:]]


def streamed_from_the_submit():
    with begin("ok;words=50", stream=True) as stream:
        seen = list(stream)
    for event in seen:
        strictly(ResponseStreamEvent, event)
    assert seen[0].type == "response.created" and seen[-1].type == "response.completed"


def failed_run():
    run = ended("fail;code=server_error")
    assert run.status == "failed" and run.error.code == "server_error", run.error


def incomplete():
    run = ended("incomplete")
    assert run.status == "incomplete" and run.incomplete_details.reason == "max_output_tokens"


def cancelled():
    run = begin("stuck")
    strictly(Response, client.responses.cancel(run.id))
    while (run := client.responses.retrieve(run.id)).status != "cancelled":
        assert run.status in ("queued", "in_progress"), run.status
    strictly(Response, run)
    assert client.responses.cancel(run.id).status == "cancelled", "a cancel may be repeated"


def deleted():
    run = ended("ok")
    client.responses.delete(run.id)
    refused(openai.NotFoundError, lambda: client.responses.retrieve(run.id))


def refused(kind, call, code=None):
    try:
        call()
    except kind as error:
        assert code is None or error.code == code, f"{error.code} in place of {code}"
        return
    raise AssertionError(f"no {kind.__name__}")


def refusals():
    refused(openai.BadRequestError, lambda: begin("ok", model="gpt-0"), "model_not_found")
    refused(openai.BadRequestError, lambda: begin("ok", store=False))
    refused(openai.RateLimitError, lambda: begin("429"), "rate_limit_exceeded")
    refused(openai.RateLimitError, lambda: begin("quota;status=429"), "insufficient_quota")
    refused(openai.InternalServerError, lambda: begin("503"))
    wrong = client.with_options(api_key="sk-wrong")
    refused(openai.AuthenticationError, lambda: wrong.models.list(), "invalid_api_key")
    unknown = "resp_00000000-0000-4000-8000-000000000000"
    refused(openai.NotFoundError, lambda: client.responses.cancel(unknown))
    refused(openai.APIConnectionError, lambda: begin("drop_submit"))


def models():
    listed = list(client.models.list())
    for model in listed:
        strictly(openai.types.Model, model)
    assert any(model.shutdown_date for model in listed), listed


for name, works in [
    ("models", models),
    ("completed", completed),
    ("streamed", streamed),
    ("streamed from the submit", streamed_from_the_submit),
    ("failed", failed_run),
    ("incomplete", incomplete),
    ("cancelled", cancelled),
    ("deleted", deleted),
    ("refusals", refusals),
]:
    check(name, works)
print(f"openai {openai.__version__}: {failed} failed", file=sys.stderr)
sys.exit(failed > 0)
