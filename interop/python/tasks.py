"""MCP tasks for the Python client, which knows none by itself: declares the extension, asks after a task until it
ends, and hands its result to the caller."""

from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.client.extension import ClientExtension, ResultClaim
from pydantic import ConfigDict, Field


class Created(types.Result):
    result_type: Literal["task"] = Field("task", alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    poll_interval_ms: int | None = Field(None, alias="pollIntervalMs")


class State(types.Result):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    task_id: str = Field(alias="taskId")
    status: str
    status_message: str | None = Field(None, alias="statusMessage")
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class TaskParams(types.RequestParams):
    task_id: str = Field(alias="taskId")


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams
    name_param = "taskId"


class Tasks(ClientExtension):
    """Remembers every task it has seen, with the words it said on the way."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.said: list[str] = []
        self.cancel_next = False

    def claims(self):
        return [ResultClaim(result_type="task", model=Created, resolve=self.resolve)]

    async def resolve(self, created: Created, context) -> types.CallToolResult:
        self.seen.append(created.task_id)
        if self.cancel_next:
            self.cancel_next = False
            params = TaskParams(taskId=created.task_id)
            await context.session.send_request(CancelTask(params=params), types.EmptyResult)
        while True:
            state = await task(context.session, created.task_id)
            self.said.append(state.status_message or "")
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            if state.status in ("failed", "cancelled"):
                raise Ended(state)
            await anyio.sleep((created.poll_interval_ms or 500) / 1000)


class Ended(Exception):
    """A task that has no result."""

    def __init__(self, state: State) -> None:
        super().__init__(f"{state.status} {state.error}")
        self.state = state


async def task(session, task_id: str) -> State:
    return await session.send_request(GetTask(params=TaskParams(taskId=task_id)), State)
