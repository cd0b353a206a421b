// MCP tasks for the TypeScript client. Its wire codecs know none, so the official add-on asks for a way to send
// requests past them: they go over the client's own transport and their answers are taken off before it sees them.
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

export const TASKS = 'io.modelcontextprotocol/tasks';

/** Calls a tool that may answer with a task, and follows it to its end. */
export async function callAsTask(client, transport, clientInfo, name, args, { cancel = false } = {}) {
  const past = dispatchPast(transport);
  const session = createTaskSessionFromClient(client, {
    endpointId: 'outlast',
    rawDispatch: past.dispatch,
    v2RequestFraming: {
      protocolVersion: client.getNegotiatedProtocolVersion(),
      clientInfo,
      clientCapabilities: { extensions: { [TASKS]: {} } },
    },
  });
  try {
    const execution = await session.callTool(name, args);
    if (cancel) await execution.cancel();
    const { outcome } = await execution.settle();
    return { outcome, result: cancel ? undefined : resultFromTaskOutcome(outcome), sent: past.sent };
  } finally {
    await session.close();
    past.end();
  }
}

function dispatchPast(transport) {
  const waiting = new Map();
  const sent = [];
  const seen = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const settle = waiting.get(message.id);
    if (!settle) return seen?.(message, extra);
    waiting.delete(message.id);
    settle(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
  };
  const dispatch = async request => {
    const id = `past-${crypto.randomUUID()}`;
    sent.push(request.method);
    const answer = new Promise(settle => waiting.set(id, settle));
    await transport.send({ jsonrpc: '2.0', id, ...request });
    return answer;
  };
  return { dispatch, sent, end: () => { transport.onmessage = seen; } };
}
