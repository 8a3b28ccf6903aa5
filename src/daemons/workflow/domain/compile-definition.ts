import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  type JobDefinition,
  type RetryPolicy,
  type StepDefinition,
  WorkflowDefinition,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { JsonValue } from '../../../store/ports/index.ts';
import { withinTime } from './expressions.ts';
import { scheduleFault } from './schedule-times.ts';
import type { StepKind } from './step-kind.ts';
import {
  type Condition,
  compileCondition,
  compileTemplate,
  type DefinitionIssue,
  formatPath,
  type Path,
  type Template,
} from './templates.ts';

export interface CompiledStep {
  /** Within its job. */
  id: string;
  index: number;
  name: string;
  uses: string;
  kind: StepKind;
  with: Template;
  /** As written, before expressions are evaluated. */
  rawWith: Record<string, JsonValue>;
  condition: Condition;
  retry: RetryPolicy | undefined;
  timeoutMs: number;
  continueOnError: boolean;
  idempotent: boolean | undefined;
  idempotencyKey: Template | null;
}

export interface CompiledJob {
  id: string;
  needs: readonly string[];
  condition: Condition;
  matrix: Template | null;
  maxParallel: number;
  failFast: boolean;
  timeoutMs: number | null;
  continueOnError: boolean;
  outputs: Template;
  steps: readonly CompiledStep[];
}

/** A definition ready to run. */
export interface CompiledWorkflow {
  hash: string;
  /** The text that the hash is of, and that runs are pinned to: JSON. */
  body: string;
  definition: WorkflowDefinition;
  concurrencyKey: Template | null;
  outputs: Template | null;
  /** Every job after those it needs. */
  jobs: readonly CompiledJob[];
  /** The input with defaults filled in. Throws VALIDATION_ERROR. */
  checkInput(input: JsonValue): JsonValue;
}

/** Which kind runs what a step uses; undefined for what nothing runs. */
export type KindOf = (uses: string) => StepKind | undefined;

/** A fault as it is told: `line` and `column` count from 1, in the text at `path`. */
export interface ToldIssue {
  path: string;
  message: string;
  line?: number;
  column?: number;
}

/** Compiles a definition as written. Throws VALIDATION_ERROR with every fault and its place in `details.issues`. */
export function compileDefinition(written: unknown, kindOf: KindOf): CompiledWorkflow {
  const parsed = WorkflowDefinition.safeParse(written);
  if (!parsed.success) {
    throw invalidDefinition(
      parsed.error.issues.map(({ path, message }) => ({ path: path as Path, message })),
      written,
    );
  }
  const definition = parsed.data;
  const issues: DefinitionIssue[] = [];
  const jobs = inOrder(definition, issues).map((id) => compileJob(id, definition, kindOf, issues));
  const compiled: Omit<CompiledWorkflow, 'hash' | 'body'> = {
    definition,
    concurrencyKey: definition.concurrency
      ? only(
          compileTemplate(definition.concurrency.key, ['concurrency', 'key'], issues),
          { variables: ['input', 'run'] },
          issues,
        )
      : null,
    outputs: definition.outputs
      ? names(
          compileTemplate(definition.outputs, ['outputs'], issues),
          'jobs',
          Object.keys(definition.jobs),
          issues,
        )
      : null,
    jobs,
    checkInput: inputCheck(definition, issues),
  };
  for (const [index, plan] of definition.on.schedule.entries()) {
    const fault = scheduleFault(plan);
    if (fault) issues.push({ path: ['on', 'schedule', index, fault.key], message: fault.message });
  }
  if (issues.length > 0) throw invalidDefinition(issues, written);
  const body = canonicalJson(definition);
  return { ...compiled, body, hash: createHash('sha256').update(body).digest('hex') };
}

function invalidDefinition(issues: DefinitionIssue[], written: unknown): PlatformError {
  const told = issues.map((issue) => toTold(issue, written));
  const [first] = told;
  const more = told.length > 1 ? ` (and ${told.length - 1} more, see details.issues)` : '';
  const place = first!.line ? `${first!.path}:${first!.line}:${first!.column}` : first!.path;
  return new PlatformError(
    'VALIDATION_ERROR',
    `The workflow definition is not valid: ${place}: ${first!.message}${more}`,
    {
      details: { issues: told },
    },
  );
}

function toTold({ path, message, offset }: DefinitionIssue, written: unknown): ToldIssue {
  const text = path.reduce<unknown>(
    (value, part) => (value as Record<string, unknown> | undefined)?.[part],
    written,
  );
  if (offset === undefined || typeof text !== 'string') return { path: formatPath(path), message };
  const before = text.slice(0, offset).split('\n');
  return { path: formatPath(path), message, line: before.length, column: before.at(-1)!.length + 1 };
}

/** Job ids, each after those it needs. */
function inOrder({ jobs }: WorkflowDefinition, issues: DefinitionIssue[]): string[] {
  const order: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  function visit(id: string, trail: string[]): void {
    if (state.get(id) === 'done') return;
    if (state.get(id) === 'open') {
      issues.push({
        path: ['jobs', id, 'needs'],
        message: `jobs need each other in a circle: ${[...trail, id].join(' -> ')}`,
      });
      return;
    }
    state.set(id, 'open');
    for (const [index, need] of jobs[id]!.needs.entries()) {
      if (Object.hasOwn(jobs, need)) visit(need, [...trail, id]);
      else issues.push({ path: ['jobs', id, 'needs', index], message: `there is no job "${need}"` });
    }
    state.set(id, 'done');
    order.push(id);
  }
  for (const id of Object.keys(jobs)) visit(id, []);
  return order;
}

function compileJob(
  id: string,
  workflow: WorkflowDefinition,
  kindOf: KindOf,
  issues: DefinitionIssue[],
): CompiledJob {
  const job = workflow.jobs[id]!;
  const path: Path = ['jobs', id];
  const ids = job.steps.map((step, index) => step.id ?? `step${index + 1}`);
  for (const [index, name] of ids.entries()) {
    if (ids.indexOf(name) !== index)
      issues.push({ path: [...path, 'steps', index, 'id'], message: `the job has two steps "${name}"` });
  }
  const outputs = compileTemplate(job.outputs, [...path, 'outputs'], issues);
  const condition = compileCondition(job.if, [...path, 'if'], issues);
  const matrix = job.strategy
    ? compileTemplate(job.strategy.matrix, [...path, 'strategy', 'matrix'], issues)
    : null;
  for (const template of [outputs, condition, ...(matrix ? [matrix] : [])]) {
    names(template, 'needs', job.needs, issues);
    names(template, 'steps', template === outputs ? ids : [], issues);
  }
  return {
    id,
    needs: job.needs,
    condition,
    matrix,
    maxParallel: job.strategy?.maxParallel ?? Number.POSITIVE_INFINITY,
    failFast: job.strategy?.failFast ?? true,
    timeoutMs: job.timeoutMs ?? null,
    continueOnError: job.continueOnError,
    outputs,
    steps: job.steps.map((step, index) =>
      compileStep(
        step,
        { id: ids[index]!, index, earlier: ids.slice(0, index) },
        { job, path, workflow },
        kindOf,
        issues,
      ),
    ),
  };
}

function compileStep(
  step: StepDefinition,
  place: { id: string; index: number; earlier: string[] },
  { job, path: jobPath, workflow }: { job: JobDefinition; path: Path; workflow: WorkflowDefinition },
  kindOf: KindOf,
  issues: DefinitionIssue[],
): CompiledStep {
  const path = [...jobPath, 'steps', place.index];
  const kind = kindOf(step.uses);
  if (!kind)
    issues.push({
      path: [...path, 'uses'],
      message: `nothing runs "${step.uses}": name a plugin's command ("<plugin>/<command>") or one of http, set, wait, approval, signal, workflow`,
    });
  for (const issue of kind?.check(step.with) ?? [])
    issues.push({ path: [...path, 'with', ...issue.path], message: issue.message });
  const input = compileTemplate(step.with, [...path, 'with'], issues);
  const condition = compileCondition(step.if, [...path, 'if'], issues);
  const key =
    step.idempotencyKey === undefined
      ? null
      : compileTemplate(step.idempotencyKey, [...path, 'idempotencyKey'], issues);
  for (const template of [input, condition, ...(key ? [key] : [])]) {
    names(template, 'steps', place.earlier, issues);
    names(template, 'needs', job.needs, issues);
  }
  return {
    id: place.id,
    index: place.index,
    name: step.name ?? place.id,
    uses: step.uses,
    kind: kind!,
    with: input,
    rawWith: step.with,
    condition,
    retry: step.retry ?? workflow.retry,
    timeoutMs: step.timeoutMs ?? kind?.defaultTimeoutMs ?? 0,
    continueOnError: step.continueOnError,
    idempotent: step.idempotent,
    idempotencyKey: key,
  };
}

/** Every name an expression takes of `variable` must be one of `known`: a misspelt step would be noticed only when it is too late. */
function names<T extends Pick<Template, 'expressions'>>(
  template: T,
  variable: string,
  known: readonly string[],
  issues: DefinitionIssue[],
): T {
  for (const { expression, path, offset: start } of template.expressions)
    for (const { name, offset } of expression.namesOf(variable))
      if (!known.includes(name))
        issues.push({
          path,
          message: `"${variable}.${name}" is not there at this point${known.length > 0 ? `; there is ${known.map((one) => `${variable}.${one}`).join(', ')}` : ''}`,
          offset: start + offset,
        });
  return template;
}

function only(
  template: Template,
  { variables }: { variables: string[] },
  issues: DefinitionIssue[],
): Template {
  for (const variable of ['steps', 'needs', 'jobs', 'matrix'].filter((name) => !variables.includes(name)))
    names(template, variable, [], issues);
  return template;
}

function inputCheck(
  { inputs }: WorkflowDefinition,
  issues: DefinitionIssue[],
): CompiledWorkflow['checkInput'] {
  if (!inputs) return (input) => input;
  let schema: z.ZodType;
  try {
    schema = z.fromJSONSchema(inputs as never);
  } catch (error) {
    issues.push({
      path: ['inputs'],
      message: `is not a JSON Schema that can be used: ${(error as Error).message}`,
    });
    return (input) => input;
  }
  return (input) => {
    // Within time: a schema may hold a pattern that backtracks for ever.
    const parsed = withinTime(() => schema.safeParse(input), 500);
    if (parsed.success) return parsed.data as JsonValue;
    const told = parsed.error.issues.map(({ path, message }) => ({
      path: formatPath(['input', ...(path as Path)]),
      message,
    }));
    throw new PlatformError('VALIDATION_ERROR', `${told[0]!.path}: ${told[0]!.message}`, {
      details: { issues: told },
    });
  };
}

/** JSON with the keys of every object in order, so that equal definitions have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
