import type { JobDefinition, StepDefinition, WorkflowDefinition } from '../../../../contracts/index.ts';
import { retryOf } from '../steps/retry-policy.ts';
import { names } from './compile-names.ts';
import type { CompiledJob, CompiledStep, KindOf } from './compiled-workflow.ts';
import { takeSecrets } from './secret-places.ts';
import { addIssue, compileCondition, compileTemplate, type DefinitionIssue, type Path } from './templates.ts';

/** Compiles jobs in dependency order. Adds faults to `issues`. */
export function compileJobs(
  definition: WorkflowDefinition,
  kindOf: KindOf,
  issues: DefinitionIssue[],
): CompiledJob[] {
  return inOrder(definition, issues).map((id) => compileJob(id, definition, kindOf, issues));
}

/** Returns the job ids in dependency order. Adds circular dependencies to `issues`. */
function inOrder({ jobs }: WorkflowDefinition, issues: DefinitionIssue[]): string[] {
  const order: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  function visit(id: string, trail: string[]): void {
    if (state.get(id) === 'done') return;
    if (state.get(id) === 'open') {
      addIssue(issues, {
        path: ['jobs', id, 'needs'],
        message: `jobs need each other in a circle: ${[...trail, id].join(' -> ')}`,
      });
      return;
    }
    state.set(id, 'open');
    for (const [index, need] of jobs[id]!.needs.entries()) {
      if (Object.hasOwn(jobs, need)) visit(need, [...trail, id]);
      else
        addIssue(issues, {
          path: ['jobs', id, 'needs', index],
          message: `there is no job "${need}"`,
          isReference: true,
        });
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
      addIssue(issues, { path: [...path, 'steps', index, 'id'], message: `the job has two steps "${name}"` });
  }
  const outputs = compileTemplate(job.outputs, [...path, 'outputs'], issues);
  const condition = compileCondition(job.if, [...path, 'if'], issues);
  const matrix = job.strategy
    ? compileTemplate(job.strategy.matrix, [...path, 'strategy', 'matrix'], issues)
    : null;
  for (const template of [outputs, condition, ...(matrix ? [matrix] : [])]) {
    names(template, 'delivery', [], issues);
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
    addIssue(issues, {
      path: [...path, 'uses'],
      message: `nothing runs "${step.uses}": name a plugin's command ("<plugin>/<command>") or one of http, set, wait, approval, signal, workflow; for a script write run:`,
    });
  for (const issue of kind?.check(step.with) ?? [])
    addIssue(issues, { path: [...path, 'with', ...issue.path], message: issue.message });
  const taken = takeSecrets(
    step.with,
    { allowed: workflow.permissions?.secrets ?? [], kind, at: [...path, 'with'] },
    issues,
  );
  const input = compileTemplate(taken.shown, [...path, 'with'], issues);
  const condition = compileCondition(step.if, [...path, 'if'], issues);
  const key =
    step.idempotencyKey === undefined
      ? null
      : compileTemplate(step.idempotencyKey, [...path, 'idempotencyKey'], issues);
  for (const template of [input, condition, ...(key ? [key] : [])]) {
    names(template, 'delivery', [], issues);
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
    ...(taken.secrets.length === 0 ? {} : { secrets: taken.secrets }),
    rawWith: step.with,
    condition,
    retry: retryOf(step.retry, workflow.retry),
    timeoutMs: step.timeoutMs ?? kind?.defaultTimeoutMs ?? 0,
    continueOnError: step.continueOnError,
    idempotent: step.idempotent,
    idempotencyKey: key,
  };
}
