import { createHash } from 'node:crypto';
import type {
  CodeWorkflowDefinition,
  WebhookTrigger,
  WorkflowDefinition,
} from '../../../../contracts/index.ts';
import { canonicalJson } from '../../../../kit/data/json.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { repeatedIds } from '../cron/schedule-ids.ts';
import { scheduleFault } from '../cron/schedule-times.ts';
import { compileEndHandlers } from './compile-end-handlers.ts';
import { only } from './compile-names.ts';
import { compileSignals } from './compile-signals.ts';
import type { CompiledTrigger, CompiledWorkflow } from './compiled-workflow.ts';
import { type CheckedPart, schemaAt } from './input-schema.ts';
import {
  compileCondition,
  compileTemplate,
  type DefinitionIssue,
  formatPath,
  inBraces,
  type Path,
} from './templates.ts';

type Common = Pick<
  WorkflowDefinition | CodeWorkflowDefinition,
  'inputs' | 'signals' | 'signalApprovers' | 'on' | 'concurrency'
> &
  Partial<Pick<WorkflowDefinition, 'jobs'>>;

/**
 * Adds the faults of a definition's schedules to `issues`. Callers skip this check for stored definitions, because
 * earlier versions accepted schedules that are now invalid.
 */
export function checkSchedules({ on }: Pick<Common, 'on'>, issues: DefinitionIssue[]): void {
  for (const [index, plan] of on.schedule.entries()) {
    const fault = scheduleFault(plan);
    if (fault) issues.push({ path: ['on', 'schedule', index, fault.key], message: fault.message });
  }
  for (const index of repeatedIds(on.schedule))
    issues.push({
      path: ['on', 'schedule', index, 'id'],
      message: 'is already the id of an earlier schedule',
    });
}

/**
 * Compiles the fields that all workflows have, whether written in code or with listed steps. Adds faults to `issues`.
 */
export function compileCommon(
  definition: Common,
  issues: DefinitionIssue[],
): Pick<
  CompiledWorkflow,
  'concurrencyKey' | 'inputSchema' | 'signalSchemas' | 'signalApprovers' | 'triggers' | 'endHandlers'
> {
  const schemas = { issues, count: { parts: 0 } };
  return {
    concurrencyKey: definition.concurrency
      ? only(
          compileTemplate(definition.concurrency.key, ['concurrency', 'key'], issues),
          { variables: ['input', 'run'] },
          issues,
        )
      : null,
    inputSchema: definition.inputs ? schemaAt(['inputs'], definition.inputs, schemas) : null,
    ...compileSignals(definition, schemas),
    triggers: (definition.on.webhook ?? []).map((trigger, index) => compileTrigger(trigger, index, issues)),
    endHandlers: compileEndHandlers(definition.on, issues),
  };
}

function compileTrigger(
  { pluginId, event, instanceId, if: written, input = inBraces('delivery.payload') }: WebhookTrigger,
  index: number,
  issues: DefinitionIssue[],
): CompiledTrigger {
  const path: Path = ['on', 'webhook', index];
  const condition = compileCondition(written, [...path, 'if'], issues);
  const template = compileTemplate(input, [...path, 'input'], issues);
  for (const one of [condition, template]) only(one, { variables: ['delivery'] }, issues);
  return { pluginId, event, instanceId, condition, input: template };
}

/** Returns a VALIDATION_ERROR whose `details.issues` contains the path of every fault, such as `input.items[0].sku`. */
export function invalidInput(
  issues: ReadonlyArray<{ path: Path; message: string }>,
  part: CheckedPart = 'input',
): PlatformError {
  const told = issues.map(({ path, message }) => ({ path: formatPath([part, ...path]), message }));
  return new PlatformError('VALIDATION_ERROR', `${told[0]!.path}: ${told[0]!.message}`, {
    details: { issues: told },
  });
}

/** Returns the canonical text of a definition, and its hash. Each run is pinned to this text. */
export function pinned(definition: object): Pick<CompiledWorkflow, 'hash' | 'body'> {
  const body = canonicalJson(definition);
  return { body, hash: createHash('sha256').update(body).digest('hex') };
}
