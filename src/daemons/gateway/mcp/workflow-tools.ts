import { startRun, type WorkflowSummary, workflowToolName } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { objectSchema } from './plugin-tools.ts';
import { RUN_RESULT } from './tasks/task.ts';
import type { Tool } from './tool.ts';

export interface WorkflowToolsDeps {
  /** Returns the registered workflows. Rejects while the workflow service is away. */
  workflows(): Promise<readonly WorkflowSummary[]>;
  clock: Clock;
}

const CACHE_TTL_MS = seconds(2);

/** The workflows that are offered to agents. */
export class WorkflowTools {
  readonly #deps: WorkflowToolsDeps;
  #tools: Tool[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(deps: WorkflowToolsDeps) {
    this.#deps = deps;
  }

  /** Returns the tools. While the workflow service is away, those of the last answer stay in the list. */
  async list(): Promise<Tool[]> {
    const now = this.#deps.clock.monotonic();
    if (now - this.#readAt < CACHE_TTL_MS) return this.#tools;
    try {
      const workflows = await this.#deps.workflows();
      this.#tools = workflows.flatMap((workflow) =>
        workflow.mcp?.expose ? [toolOf(workflow, workflow.mcp)] : [],
      );
      this.#readAt = now;
    } catch {
      // A call of a tool reports the failure.
    }
    return this.#tools;
  }
}

function toolOf(workflow: WorkflowSummary, mcp: NonNullable<WorkflowSummary['mcp']>): Tool {
  const about = mcp.description ?? workflow.description ?? `Starts the workflow ${workflow.id}.`;
  const start: Tool['startRun'] = async (input, { call }, options) => {
    const body = { workflowId: workflow.id, input: input as never, ...options };
    return (await call(startRun, { body })).run;
  };
  return {
    name: workflowToolName(workflow.id, mcp),
    title: mcp.title ?? workflow.name ?? workflow.id,
    description: `${about} As a task it returns the result of the run; otherwise {runId} at once: then use run_wait.`,
    inputSchema: objectSchema(workflow.inputs),
    outputSchema: RUN_RESULT,
    needs: mcp.destructive ? 'admin' : 'editor',
    readOnly: mcp.readOnly,
    destructive: mcp.destructive,
    hasOutsideData: false,
    run: async (input, run) => {
      const { id, status } = await start(input, run, { labels: {}, idempotencyKey: undefined });
      return { runId: id, status };
    },
    startRun: start,
  };
}
