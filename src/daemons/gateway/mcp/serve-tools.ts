import { inputRequired, isInputRequiredResult } from '@modelcontextprotocol/server';
import { pageOf } from './pages.ts';
import type { McpCall } from './platform-calls.ts';
import { invalidParams } from './protocol-error.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { RepeatedCallQuestions, StreamedQuestions } from './tasks/elicitations.ts';
import { askedTask, modernCall, startTask } from './tasks/task-methods.ts';
import type { TaskServer } from './tasks/task-server.ts';
import type { Tool } from './tool.ts';

/** Serves the tools that the caller may call. */
export function serveTools(
  server: TaskServer,
  deps: ProtocolServerDeps,
  { call, isModern }: { call: McpCall; isModern: boolean },
): void {
  const { catalog, toolCalls, platform, tasks, answers, ids, clientOf, inFlight } = deps;
  server.setRequestHandler('tools/list', async ({ params }) => {
    const tools = await catalog.list(call);
    const { items, nextCursor } = pageOf(tools, params?.cursor, ({ name }) => name);
    return { tools: items.map((tool) => shownTool(tool, isModern)), ...nextCursor };
  });
  server.onToolCall(async ({ params }, context) => {
    const asked = askedTask(params, context, isModern);
    const tool = asked && (await catalog.find(call, asked.name));
    return tool && startTask(tasks, tool, asked, { call, isModern });
  });
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = await catalog.find(call, params.name);
    if (!tool) throw invalidParams(`There is no tool "${params.name.slice(0, 100)}".`);
    const both = AbortSignal.any([call.signal, context.mcpReq.signal]);
    const from = { ...(isModern ? modernCall(call, context) : call), signal: both };
    const repeated = new RepeatedCallQuestions(answers, from, context.mcpReq.inputResponses);
    const questions = isModern
      ? repeated
      : new StreamedQuestions({ answers, ids, server }, from, context.mcpReq.id);
    const client = clientOf(context, tool.name, call);
    const result = await inFlight.run(from, context.mcpReq.id, (signal) =>
      toolCalls.run(tool, params.arguments, { ...from, signal }, { platform, client, questions }),
    );
    if (isInputRequiredResult(result)) return result;
    const requests = repeated.requests;
    if (!result.isError && Object.keys(requests).length > 0)
      return inputRequired({ inputRequests: requests });
    return server.projectCallToolResult(result, tool.outputSchema);
  });
}

function shownTool(
  { name, title, description, inputSchema, outputSchema, ...tool }: Tool,
  isModern: boolean,
) {
  const annotations = {
    ...{ title, readOnlyHint: tool.readOnly, destructiveHint: tool.destructive },
    openWorldHint: tool.hasOutsideData,
  };
  return {
    ...{ name, title, description, inputSchema, annotations },
    ...(outputSchema ? { outputSchema } : {}),
    ...(tool.startRun && !isModern ? { execution: { taskSupport: 'optional' as const } } : {}),
  };
}
