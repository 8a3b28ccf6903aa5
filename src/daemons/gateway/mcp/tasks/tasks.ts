import type { CallToolResult } from '@modelcontextprotocol/server';
import {
  getRun,
  listRuns,
  postCancelRunPrefixed,
  RunId,
  type WorkflowRun,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { McpCall, PlatformCalls } from '../platform-calls.ts';
import { resultOf } from '../results.ts';
import type { Tool } from '../tool.ts';
import type { ToolAccess } from '../tool-access.ts';
import type { ToolCalls } from '../tool-calls.ts';
import { ABSENT_CLIENT } from '../tool-client.ts';
import type { Question } from './questions.ts';
import type { RunAnswers } from './run-answers.ts';
import {
  isTaskOf,
  isTerminal,
  ownerFilter,
  RUN_RESULT,
  resultValue,
  type TaskState,
  taskLabels,
  taskState,
  toolOf,
} from './task.ts';

export interface TasksDeps {
  platform: PlatformCalls;
  access: ToolAccess;
  toolCalls: ToolCalls;
  answers: RunAnswers;
  clock: Clock;
  /** Longest TTL in ms: the retention of runs. */
  maxTtlMs: number;
}

export interface FoundTask {
  run: WorkflowRun;
  state: TaskState;
  questions: readonly Question[];
}

export interface NewTask {
  tool: Tool;
  input: unknown;
  /** TTL that the client asked for, in ms. */
  ttlMs: number | undefined;
  idempotencyKey: string | undefined;
}

const PAGE_SIZE = 50;

/**
 * The tasks of MCP clients. A task is a run that a tool has started, so it survives everything that a run survives. It
 * belongs to the tenant and to the caller that has started it. @spec docs/mcp.md "Long work as tasks"
 */
export class Tasks {
  readonly #deps: TasksDeps;

  constructor(deps: TasksDeps) {
    this.#deps = deps;
  }

  /** Starts the run of a tool, under the limits of tool calls. Returns the task, or the result of the failed call. */
  async start(
    { tool, input, ttlMs, idempotencyKey }: NewTask,
    call: McpCall,
  ): Promise<{ state: TaskState } | { failure: CallToolResult }> {
    const { toolCalls, platform, maxTtlMs } = this.#deps;
    const labels = taskLabels(call.caller.hostId, tool.name, { asked: ttlMs, maxMs: maxTtlMs });
    let started: WorkflowRun | undefined;
    const asTask: Tool = {
      ...tool,
      outputSchema: undefined,
      run: async (given, run) => {
        started = await tool.startRun!(given, run, { labels, idempotencyKey });
        return { runId: started.id };
      },
    };
    const result = await toolCalls.run(asTask, input, call, { platform, client: ABSENT_CLIENT });
    // The tools of workflows ask nothing before they start.
    const { isError } = result as CallToolResult;
    if (isError || !started) return { failure: result as CallToolResult };
    return { state: taskState(started, false) };
  }

  /** Returns the task. Throws WORKFLOW_RUN_NOT_FOUND unless it belongs to the caller and has not expired. */
  async get(taskId: string, call: McpCall): Promise<FoundTask> {
    const run = await this.#find(taskId, call, 'viewer');
    const questions = await this.#deps.answers.questions(run, call);
    return { run, questions, state: taskState(run, questions.length > 0) };
  }

  /** Returns a page of the caller's tasks, newest first. A page can be short although there is a cursor. */
  async list(
    cursor: string | undefined,
    call: McpCall,
  ): Promise<{ states: TaskState[]; nextCursor: string | null }> {
    const { platform, access, clock } = this.#deps;
    const { hostId } = call.caller;
    const query = {
      label: [ownerFilter(hostId)],
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    };
    const page = await platform.call(listRuns, { query: query as never }, call);
    const own = page.items.filter(
      (run) => isTaskOf(run, hostId, clock.now()) && access.allowsTask(call.caller, toolOf(run), 'viewer'),
    );
    const isAsked = (run: WorkflowRun): boolean =>
      (run.waitingReason === 'approval' || run.waitingReason === 'signal') && this.#deps.answers.canAsk(call);
    return { states: own.map((run) => taskState(run, isAsked(run))), nextCursor: page.nextCursor };
  }

  /** Cancels the run of a task, and returns the task. A task that has ended stays as it is. */
  async cancel(taskId: string, call: McpCall): Promise<{ state: TaskState; wasTerminal: boolean }> {
    const run = await this.#find(taskId, call, 'editor');
    const before = taskState(run, false);
    if (isTerminal(before.status)) return { state: before, wasTerminal: true };
    await this.#deps.platform.call(postCancelRunPrefixed, { params: { runId: run.id } }, call);
    return { state: taskState(await this.#find(taskId, call, 'editor'), false), wasTerminal: false };
  }

  /** Returns the result of the tool whose run has ended. */
  resultOf(run: WorkflowRun): CallToolResult {
    const result = resultOf({ outputSchema: RUN_RESULT, hasOutsideData: true }, resultValue(run));
    return run.status === 'succeeded' ? result : { ...result, isError: true };
  }

  async #find(taskId: string, call: McpCall, needs: 'viewer' | 'editor'): Promise<WorkflowRun> {
    const { platform, access, clock } = this.#deps;
    const id = RunId.safeParse(taskId);
    if (!id.success) throw notFound();
    const run = await platform.call(getRun, { params: { runId: id.data } }, call);
    if (!isTaskOf(run, call.caller.hostId, clock.now())) throw notFound();
    access.requireTask(call, toolOf(run), needs);
    return run;
  }
}

const notFound = (): PlatformError =>
  new PlatformError('WORKFLOW_RUN_NOT_FOUND', 'There is no such task of yours, or it has expired.');
