import { CODE_STEP, CodeWorkflowDefinition, type EnterStep } from '../../../contracts/index.ts';
import type { JsonValue, StepRecord } from '../../../store/ports/index.ts';
import { compileCommon, pinned } from './compile-common.ts';
import type { CompiledStep, CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import { invalidDefinition } from './definition-faults.ts';
import { type DefinitionIssue, type Path, type Template, WHEN_SUCCESSFUL } from './templates.ts';

/** The one job of a workflow in code. */
export const CODE_JOB = 'main';

/** Compiles an entry of a plugin's manifest. Throws VALIDATION_ERROR as `compileDefinition` does. */
export function compileCode(written: object, pluginId: string): CompiledWorkflow {
  const parsed = CodeWorkflowDefinition.safeParse(written);
  if (!parsed.success) {
    throw invalidDefinition(
      parsed.error.issues.map(({ path, message }) => ({ path: path as Path, message })),
      written,
    );
  }
  const { handler, ...definition } = parsed.data;
  const issues: DefinitionIssue[] = [];
  const common = compileCommon(definition, issues);
  if (issues.length > 0) throw invalidDefinition(issues, written);
  return {
    definition: {
      ...definition,
      jobs: { [CODE_JOB]: { needs: [], continueOnError: false, outputs: {}, steps: [] } },
    },
    code: { pluginId, handler },
    outputs: null,
    jobs: [
      {
        id: CODE_JOB,
        needs: [],
        condition: WHEN_SUCCESSFUL,
        matrix: null,
        maxParallel: 1,
        failFast: false,
        timeoutMs: null,
        continueOnError: false,
        outputs: constant({}),
        steps: [],
      },
    ],
    ...common,
    ...pinned({ ...parsed.data, plugin: pluginId }),
  };
}

/** A workflow in code as it was pinned; undefined for any other. */
export function pinnedCode(body: object): CompiledWorkflow | undefined {
  if (!('handler' in body && 'plugin' in body)) return undefined;
  const { plugin, ...written } = body;
  return compileCode(written, plugin as string);
}

/** What a step is that the code came to. */
export interface FoundStep extends Omit<EnterStep, 'options'> {
  options: Omit<EnterStep['options'], 'retry'>;
  retry?: EnterStep['options']['retry'];
  /** Of a step that another run found, and this one took over: what its chance and time began with. */
  origin?: { seed: string; startedAt: number } | undefined;
}

export function foundIn({ found }: Pick<StepRecord, 'found'>): FoundStep {
  return JSON.parse(found!) as FoundStep;
}

/** A found step as the drivers of steps take it: nothing of it is a template, and its failure is the function's to judge. */
export function stepOfCode(
  found: FoundStep,
  index: number,
  kindOf: KindOf,
  workflow: CompiledWorkflow,
): CompiledStep {
  const { id, uses, options } = found;
  const kind = kindOf(uses);
  if (!kind) throw new Error(`Nothing runs the step "${id}", which uses "${uses}".`);
  return {
    id,
    index,
    name: id,
    uses,
    kind,
    with: constant(found.with as Record<string, JsonValue>),
    rawWith: found.with as Record<string, JsonValue>,
    condition: WHEN_SUCCESSFUL,
    retry: found.retry ?? workflow.definition.retry,
    timeoutMs: options.timeoutMs ?? kind.defaultTimeoutMs,
    continueOnError: true,
    idempotent: options.idempotent,
    idempotencyKey: options.idempotencyKey === undefined ? null : constant(options.idempotencyKey),
  };
}

/** Whether the workflow's own code does what the step does. */
export const isOwnStep = ({ uses }: Pick<CompiledStep, 'uses'>): boolean => uses === CODE_STEP;

function constant(value: JsonValue): Template {
  return { evaluate: () => value, expressions: [] };
}
