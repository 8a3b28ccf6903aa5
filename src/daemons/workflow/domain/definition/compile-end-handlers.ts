import type { EndHandler, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { only } from './compile-names.ts';
import type { CompiledEndHandler, CompiledWorkflow } from './compiled-workflow.ts';
import { endHandlersOf } from './end-handler-paths.ts';
import { compileCondition, compileTemplate, type DefinitionIssue, inBraces, type Path } from './templates.ts';

const VARIABLES = ['input', 'run'];
const FACTS = ['id', 'workflowId', 'status', 'error', 'failedStep', 'startedAt', 'finishedAt'];
/** Default `input` and `data`: the facts about the ended run, without its output, which can be large. */
const DEFAULT_VALUE: JsonValue = Object.fromEntries(FACTS.map((name) => [name, inBraces(`run.${name}`)]));
const ENDS = { failure: ['failed', 'timed_out'], success: ['succeeded'] } as const;

/** Compiles `on.failure` and `on.success` of a definition. Adds faults to `issues`. */
export function compileEndHandlers(
  on: WorkflowDefinition['on'],
  issues: DefinitionIssue[],
): readonly CompiledEndHandler[] {
  return endHandlersOf(on).map(({ kind, handler, path }) => compileOne(kind, handler, path, issues));
}

/**
 * Returns the numbers of the handlers for each final status as JSON, such as `{"failed":[0],"timed_out":[0]}`. Returns
 * null without handlers. The store creates a task per handler when the run ends.
 */
export function endTasksOf({ endHandlers }: Pick<CompiledWorkflow, 'endHandlers'>): string | null {
  if (endHandlers.length === 0) return null;
  const tasks: Record<string, number[]> = {};
  for (const [index, { on }] of endHandlers.entries())
    for (const status of ENDS[on]) tasks[status] = [...(tasks[status] ?? []), index];
  return JSON.stringify(tasks);
}

/** Returns whether handlers act after the end of the run. */
export function hasEndTasks({ endTasks, status }: Pick<RunRecord, 'endTasks' | 'status'>): boolean {
  return endTasks !== null && Object.hasOwn(JSON.parse(endTasks), status);
}

function compileOne(
  on: CompiledEndHandler['on'],
  { if: written, workflow, input, message }: EndHandler,
  path: Path,
  issues: DefinitionIssue[],
): CompiledEndHandler {
  const template = (value: JsonValue, ...at: string[]) =>
    only(compileTemplate(value, [...path, ...at], issues), { variables: VARIABLES }, issues);
  const condition = only(
    compileCondition(written, [...path, 'if'], issues),
    { variables: VARIABLES },
    issues,
  );
  if (!message)
    return { on, condition, workflowId: workflow!, input: template(input ?? DEFAULT_VALUE, 'input') };
  const { type, data = DEFAULT_VALUE, application } = message;
  return {
    ...{ on, condition, type, data: template(data, 'message', 'data') },
    application: application === undefined ? null : template(application, 'message', 'application'),
  };
}
