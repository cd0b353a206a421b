"""Anthropic's own SDK reads what the simulator answers. anthropic==2.8.0; usage: anthropic.py BASE_URL"""

import sys

# This file has the name of the package, so its folder must not come first.
sys.path.pop(0)

import anthropic  # noqa: E402
from anthropic.types.beta import BetaManagedAgentsSession  # noqa: E402

client = anthropic.Anthropic(api_key="sk-ant-test", base_url=sys.argv[1], max_retries=0, _strict_response_validation=True)
beta = client.beta

models = [model.id for model in client.models.list()]
assert "claude-sonnet-5-5" in models, models
assert client.models.retrieve("claude-sonnet-4-5").retires_at is not None

allowed = {"type": "always_allow"}
web = [{"name": name, "enabled": True, "permission_policy": allowed} for name in ("web_search", "web_fetch")]
toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": False}, "configs": web}
agent = beta.agents.create(model="claude-sonnet-5-5", name="sdk", tools=[toolset])
environment = beta.environments.create(name="sdk", config={"type": "cloud", "networking": {"type": "unrestricted"}})
assert agent.id in [listed.id for listed in beta.agents.list()]
assert environment.id in [listed.id for listed in beta.environments.list()]


def ask(scenario: str) -> BetaManagedAgentsSession:
    budget = {"type": "limit", "max_list_cost": {"amount": "250", "currency": "USD"}}
    session = beta.sessions.create(
        agent=agent.id, environment_id=environment.id, title="sdk", metadata={"key": "k"}, budget=budget
    )
    assert session.status == "idle", session
    assert session.id in [listed.id for listed in beta.sessions.list(agent_id=agent.id)]
    text = {"type": "text", "text": f"How do heat pumps age? [[sim:{scenario}]]"}
    sent = beta.sessions.events.send(session.id, events=[{"type": "user.message", "content": [text]}])
    assert sent.data[0].type == "user.message", sent
    return session


def kinds(session) -> list[str]:
    # `next_page` is followed: a page is smaller than the list.
    return [event.type for event in beta.sessions.events.list(session.id, limit=5)]


# The stream has no beginning: the run must last longer than it takes to open one.
session = ask("ok;delay_ms=200000")
streamed = []
with beta.sessions.events.stream(session.id, event_deltas=["agent.message"]) as stream:
    for event in stream:
        streamed.append(event.type)
        if event.type == "session.status_idle":
            assert event.stop_reason.type == "end_turn", event
            break
assert "event_delta" in streamed and "agent.message" in streamed, streamed
listed = kinds(session)
for kind in ("user.message", "session.status_running", "agent.tool_use", "agent.tool_result", "agent.message"):
    assert kind in listed, (kind, listed)
done = beta.sessions.retrieve(session.id)
assert done.status == "idle" and done.usage.list_cost.currency == "USD", done
assert int(done.usage.list_cost.amount) > 0 and done.agent.model.id == "claude-sonnet-5-5", done

for scenario, reason in [
    ("incomplete", "budget_reached"),
    ("requires_action", "requires_action"),
    ("fail;code=refusal", "refusal"),
    ("fail;code=model_overloaded_error", "retries_exhausted"),
]:
    session = ask(f"{scenario};delay_ms=0")
    last = list(beta.sessions.events.list(session.id))[-1]
    assert last.type == "session.status_idle" and last.stop_reason.type == reason, last
assert kinds(ask("fail;code=terminated;delay_ms=0"))[-1] == "session.status_terminated"

session = ask("stuck")
stopped = beta.sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
assert stopped.data[0].type == "user.interrupt", stopped
assert beta.sessions.archive(session.id).archived_at is not None

try:
    beta.sessions.retrieve("sesn_none")
    raise AssertionError("an unknown session was found")
except anthropic.NotFoundError:
    pass
try:
    anthropic.Anthropic(api_key="wrong", base_url=sys.argv[1], max_retries=0).models.list()
    raise AssertionError("a wrong key was taken")
except anthropic.AuthenticationError:
    pass
print("anthropic", anthropic.__version__, "ok")
