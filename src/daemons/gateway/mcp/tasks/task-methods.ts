import { setTimeout as sleep } from 'node:timers/promises';
import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  RELATED_TASK_META_KEY,
  type Result,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isRecord } from '../../../../kit/data/is-record.ts';
import { toPlatformError } from '../../../../kit/errors/errors.ts';
import type { CallsInFlight } from '../calls-in-flight.ts';
import type { McpCall } from '../platform-calls.ts';
import { invalidParams, reported } from '../protocol-error.ts';
import { ERROR_KEY } from '../results.ts';
import type { Tool } from '../tool.ts';
import type { ToolCalls } from '../tool-calls.ts';
import { inputRequests, StreamedQuestions } from './elicitations.ts';
import { showsForms } from './forms.ts';
import type { QuestionIds } from './question-ids.ts';
import type { RunAnswers } from './run-answers.ts';
import { isTerminal, legacyTask, modernTask, RUN_RESULT, type TaskState } from './task.ts';
import type { FoundTask, Tasks } from './tasks.ts';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
const IMMEDIATE_KEY = 'io.modelcontextprotocol/model-immediate-response';
const IDEMPOTENCY_KEY = 'svc-platform/idempotencyKey';
const MAX_KEY_CHARS = 256;
const FIRST_POLL_MS = 100;
const MAX_POLL_MS = 1000;
/** Time for which a wait for a result tolerates failing services, in polls. */
const MAX_FAILED_POLLS = 60;

export interface TaskMethodsDeps {
  tasks: Tasks;
  answers: RunAnswers;
  ids: QuestionIds;
  toolCalls: ToolCalls;
  inFlight: CallsInFlight;
}

const ById = z.looseObject({ taskId: z.string().max(256) });
const Page = z.looseObject({ cursor: z.string().max(1024).optional() });

/** Capabilities of the server for clients of the revision. */
export const taskCapabilities = (isModern: boolean) =>
  isModern
    ? { extensions: { [TASKS_EXTENSION]: {} } }
    : { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

/** Serves the methods of tasks. @spec Tasks (2025-11-25); extension io.modelcontextprotocol/tasks (2026-07-28) */
export function serveTasks(server: Server, deps: TaskMethodsDeps, call: McpCall, isModern: boolean): void {
  if (isModern) serveModern(server, deps, call);
  else serveLegacy(server, deps, call);
}

function serveModern(server: Server, deps: TaskMethodsDeps, call: McpCall): void {
  const { tasks, answers, toolCalls } = deps;
  const serve = (method: string, work: (taskId: string, from: McpCall, given: Answers) => Promise<Result>) =>
    server.setRequestHandler(method, { params: ById }, async ({ taskId }, context) => {
      requireExtension(context);
      const from = modernCall(call, context);
      // The MCP library takes the answers out of the parameters.
      const given: Answers = context.mcpReq.inputResponses ?? {};
      return reported(() => toolCalls.limited(from, () => work(taskId, from, given)));
    });
  serve('tasks/get', async (taskId, from) => detailed(tasks, server, await tasks.get(taskId, from)));
  serve('tasks/update', async (taskId, from, given) => {
    const { run } = await tasks.get(taskId, from);
    for (const [key, answer] of Object.entries(given))
      await answers.apply({ runId: run.id, key }, answer, from);
    return {};
  });
  serve('tasks/cancel', async (taskId, from) => {
    await tasks.cancel(taskId, from);
    return {};
  });
}

type Answers = Readonly<Record<string, unknown>>;

function detailed(tasks: Tasks, server: Server, { run, state, questions }: FoundTask): Result {
  const shown = modernTask(state);
  if (shown.status === 'input_required') return { ...shown, inputRequests: inputRequests(questions) };
  if (shown.status !== 'completed') return shown;
  return { ...shown, result: server.projectCallToolResult(tasks.resultOf(run), RUN_RESULT) };
}

function serveLegacy(server: Server, deps: TaskMethodsDeps, call: McpCall): void {
  const { tasks, toolCalls, inFlight } = deps;
  const limited = (work: () => Promise<Result>): Promise<Result> =>
    reported(() => toolCalls.limited(call, work));
  server.setRequestHandler('tasks/get', { params: ById }, ({ taskId }) =>
    limited(async () => legacyTask((await tasks.get(taskId, call)).state)),
  );
  server.setRequestHandler('tasks/list', { params: Page }, ({ cursor }) =>
    limited(async () => {
      const { states, nextCursor } = await tasks.list(cursor, call);
      return { tasks: states.map(legacyTask), ...(nextCursor === null ? {} : { nextCursor }) };
    }),
  );
  server.setRequestHandler('tasks/cancel', { params: ById }, ({ taskId }) =>
    limited(async () => {
      const { state, wasTerminal } = await tasks.cancel(taskId, call);
      if (!wasTerminal) return legacyTask(state);
      throw invalidParams(`The task has ended already: it is ${state.status}.`);
    }),
  );
  server.setRequestHandler('tasks/result', { params: ById }, ({ taskId }, context) => {
    const { mcpReq } = context;
    const from = { ...call, signal: AbortSignal.any([call.signal, mcpReq.signal]) };
    const wait = (signal: AbortSignal): Promise<Result> =>
      waitForResult(server, deps, { taskId, call: { ...from, signal }, context });
    return reported(() =>
      toolCalls.limited(call, () => inFlight.run(from, mcpReq.id, wait), { isWait: true }),
    );
  });
}

interface Wait {
  taskId: string;
  /** Its signal ends the wait. */
  call: McpCall;
  context: ServerContext;
}

/** Waits until the run ends. Meanwhile the stream carries status changes, progress and questions. */
async function waitForResult(
  server: Server,
  { tasks, ...deps }: TaskMethodsDeps,
  { taskId, call, context }: Wait,
): Promise<Result> {
  const { signal } = call;
  const related = { [RELATED_TASK_META_KEY]: { taskId } };
  const questions = new StreamedQuestions({ ...deps, server }, call, context.mcpReq.id);
  const news = new TaskNews(context);
  const find = tolerant(() => tasks.get(taskId, call));
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
    const found = await find();
    if (found) {
      await news.tell(found.state);
      if (isTerminal(found.state.status)) {
        const { _meta, ...result } = server.projectCallToolResult(tasks.resultOf(found.run), RUN_RESULT);
        return { ...result, _meta: { ..._meta, ...related } };
      }
      await questions.send(found.run.id, found.questions, related);
    }
    await sleep(pollMs, undefined, { signal });
  }
}

/** Sends changes of a task on the stream of a request. */
class TaskNews {
  readonly #context: ServerContext;
  #last = '';
  #count = 0;

  constructor(context: ServerContext) {
    this.#context = context;
  }

  async tell(state: TaskState): Promise<void> {
    const { mcpReq } = this.#context;
    const news = JSON.stringify(state);
    if (news === this.#last) return;
    this.#last = news;
    await mcpReq.notify({ method: 'notifications/tasks/status', params: legacyTask(state) });
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    const params = { progressToken, progress: ++this.#count, message: state.statusMessage };
    await mcpReq.notify({ method: 'notifications/progress', params });
  }
}

/** Returns a function that yields nothing while a service of the platform is away, for example because it restarts. */
function tolerant<Found>(find: () => Promise<Found>): () => Promise<Found | undefined> {
  let failed = 0;
  return async () => {
    try {
      const found = await find();
      failed = 0;
      return found;
    } catch (thrown) {
      const isAway = toPlatformError(thrown).status >= 500;
      if (!isAway || ++failed > MAX_FAILED_POLLS) throw thrown;
      return undefined;
    }
  };
}

/** A call of a tool that is to become a task. */
export interface AskedTask {
  name: string;
  input: unknown;
  ttlMs: number | undefined;
  idempotencyKey: string | undefined;
}

/** Returns the task that a tool call asks for, or undefined for an ordinary call. */
export function askedTask(params: unknown, context: ServerContext, isModern: boolean): AskedTask | undefined {
  const { name, arguments: input, task, _meta } = isRecord(params) ? params : {};
  if (typeof name !== 'string' || !(isModern ? hasExtension(context) : isRecord(task))) return undefined;
  const ttl = isRecord(task) ? task.ttl : undefined;
  const key = isRecord(_meta) ? _meta[IDEMPOTENCY_KEY] : undefined;
  return {
    ...{ name, input },
    ttlMs: typeof ttl === 'number' && ttl >= 0 ? ttl : undefined,
    idempotencyKey: typeof key === 'string' && key !== '' && key.length <= MAX_KEY_CHARS ? key : undefined,
  };
}

/** Starts the task. Returns undefined if the call is to be answered like an ordinary one. */
export async function startTask(
  tasks: Tasks,
  tool: Tool,
  { input, ttlMs, idempotencyKey }: AskedTask,
  { call, isModern }: { call: McpCall; isModern: boolean },
): Promise<Result | undefined> {
  if (!tool.startRun) {
    if (isModern) return undefined;
    throw new ProtocolError(
      ProtocolErrorCode.MethodNotFound,
      `The tool ${tool.name} cannot be called as a task. Call it without "task".`,
    );
  }
  const started = await tasks.start({ tool, input, ttlMs, idempotencyKey }, call);
  if ('failure' in started) {
    if (isModern) return started.failure;
    const { code, message, details } = failedWith(started.failure);
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message, { code, details });
  }
  if (isModern) return { resultType: 'task', ...modernTask(started.state) };
  const immediate = `The run ${started.state.taskId} has started as a task.`;
  return { task: legacyTask(started.state), _meta: { [IMMEDIATE_KEY]: immediate } };
}

function failedWith({ _meta }: Result): { code: unknown; message: string; details: unknown } {
  const error = _meta?.[ERROR_KEY];
  const { code, message, details } = isRecord(error) ? error : {};
  return { code, message: typeof message === 'string' ? message : 'The task could not be started.', details };
}

/** Returns the call with what the client of this request can do. */
export function modernCall(call: McpCall, context: ServerContext): McpCall {
  return { ...call, elicits: showsForms(capabilitiesOf(context).elicitation) };
}

function requireExtension(context: ServerContext): void {
  if (hasExtension(context)) return;
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
}

function hasExtension(context: ServerContext): boolean {
  const { extensions } = capabilitiesOf(context);
  return isRecord(extensions) && isRecord(extensions[TASKS_EXTENSION]);
}

function capabilitiesOf({ mcpReq }: ServerContext): Record<string, unknown> {
  const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined;
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY];
  return isRecord(capabilities) ? capabilities : {};
}
