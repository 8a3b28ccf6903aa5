import { CODE_STEP, CodeWorkflowDefinition, type RetryPolicy } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { SCRIPT_KIND } from '../steps/kinds/run.ts';
import { retryOf } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';
import { checkSchedules, compileCommon, pinned } from './compile-common.ts';
import type { CompiledStep, CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import { invalidDefinition, schemaIssues } from './definition-faults.ts';
import type { FoundStep } from './found-step.ts';
import { REFUSED_IN_PLUGINS } from './scripts.ts';
import { ALWAYS, type DefinitionIssue, type Template, WHEN_SUCCESSFUL } from './templates.ts';

/** Id of the only job of a workflow written in code. */
export const CODE_JOB = 'main';

/**
 * Compiles a workflow written in code, as declared in a plugin's manifest. Throws VALIDATION_ERROR in the same cases as
 * `compileDefinition`.
 */
export function compileCode(
  written: object,
  pluginId: string,
  kindOf: KindOf,
  { isStored = false } = {},
): CompiledWorkflow {
  const parsed = CodeWorkflowDefinition.safeParse(written);
  if (!parsed.success)
    throw invalidDefinition(schemaIssues(parsed.error, written, CodeWorkflowDefinition), written);
  const { handler, ...definition } = parsed.data;
  const issues: DefinitionIssue[] = [];
  const common = compileCommon(definition, issues);
  if (!isStored) checkSchedules(definition, issues);
  if (issues.length > 0) throw invalidDefinition(issues, written);
  return {
    definition: {
      ...definition,
      jobs: { [CODE_JOB]: { needs: [], continueOnError: false, outputs: {}, steps: [] } },
    },
    code: {
      pluginId,
      handler,
      stepOf: (found, index) => stepOf(found, index, kindOf, definition.retry),
    },
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

/** Compiles a stored workflow that is written in code. Returns undefined for any other definition. */
export function pinnedCode(body: object, kindOf: KindOf): CompiledWorkflow | undefined {
  if (!('handler' in body && 'plugin' in body)) return undefined;
  const { plugin, ...written } = body;
  return compileCode(written, plugin as string, kindOf, { isStored: true });
}

/**
 * Converts a step that a workflow function requested to a compiled step. The step continues on errors, because the
 * workflow function handles failures.
 */
function stepOf(
  found: FoundStep,
  index: number,
  kindOf: KindOf,
  retry: RetryPolicy | undefined,
): CompiledStep {
  const { id, uses, options, inheritsRetry, cleanUp } = found;
  const kind = uses === CODE_STEP ? OWN_STEP : kindOf(uses);
  // Code has the permissions of its plugin. A script would not be bound to them.
  if (kind?.name === SCRIPT_KIND)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The step "${id}" runs a script, which ${REFUSED_IN_PLUGINS}.`,
    );
  if (!kind)
    throw new PlatformError('VALIDATION_ERROR', `Nothing runs the step "${id}", which uses "${uses}".`);
  const input = found.with as Record<string, JsonValue>;
  return {
    id,
    index,
    name: id,
    uses,
    kind,
    with: constant(input),
    rawWith: input,
    condition: ALWAYS,
    retry: inheritsRetry ? retryOf(undefined, options.retry) : retryOf(options.retry, retry),
    timeoutMs: options.timeoutMs ?? kind.defaultTimeoutMs,
    continueOnError: true,
    idempotent: options.idempotent,
    ...afterInterruption(kind, options),
    idempotencyKey: options.idempotencyKey === undefined ? null : constant(options.idempotencyKey),
    cleansUp: cleanUp,
  };
}

/**
 * Returns the behavior after an interruption. A `ctx.step` function is repeated by default, because its idempotency key
 * does not change.
 */
function afterInterruption(
  kind: StepKind,
  { once, idempotent }: FoundStep['options'],
): Pick<CompiledStep, 'afterInterruption'> {
  if (once) return { afterInterruption: 'ask' };
  return kind === OWN_STEP && idempotent !== false ? { afterInterruption: 'repeat' } : {};
}

/** Step kind of `ctx.step` functions, which run in the process that replays the workflow. */
const OWN_STEP: StepKind = {
  name: CODE_STEP,
  mode: 'effect',
  takesSlot: false,
  defaultTimeoutMs: minutes(5),
  check: () => [],
  isIdempotent: () => false,
  run() {
    throw new Error('A step of code was run without its code.');
  },
};

export const isOwnStep = ({ kind }: Pick<CompiledStep, 'kind'>): boolean => kind === OWN_STEP;

function constant(value: JsonValue): Template {
  return { evaluate: () => value, expressions: [], written: { kind: 'template', value, path: [] } };
}
