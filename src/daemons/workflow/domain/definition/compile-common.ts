import { createHash } from 'node:crypto';
import { z } from 'zod';
import type {
  CodeWorkflowDefinition,
  WebhookTrigger,
  WorkflowDefinition,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { problemsOf } from '../../../../kit/schema-problems.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { scheduleFault } from '../starts/schedule-times.ts';
import { only } from './compile-names.ts';
import type { CompiledTrigger, CompiledWorkflow } from './compiled-workflow.ts';
import { ExpressionError, withinTime } from './expressions.ts';
import {
  compileCondition,
  compileTemplate,
  type DefinitionIssue,
  formatPath,
  inBraces,
  type Path,
} from './templates.ts';

type Common = Pick<WorkflowDefinition | CodeWorkflowDefinition, 'inputs' | 'on' | 'concurrency'>;

/** What every definition has, whatever its steps are written in; faults are added to `issues`. */
export function compileCommon(
  definition: Common,
  issues: DefinitionIssue[],
): Pick<CompiledWorkflow, 'concurrencyKey' | 'checkInput' | 'triggers'> {
  for (const [index, plan] of definition.on.schedule.entries()) {
    const fault = scheduleFault(plan);
    if (fault) issues.push({ path: ['on', 'schedule', index, fault.key], message: fault.message });
  }
  return {
    concurrencyKey: definition.concurrency
      ? only(
          compileTemplate(definition.concurrency.key, ['concurrency', 'key'], issues),
          { variables: ['input', 'run'] },
          issues,
        )
      : null,
    checkInput: inputCheck(definition.inputs, issues),
    triggers: (definition.on.webhook ?? []).map((trigger, index) => compileTrigger(trigger, index, issues)),
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

/** Checks an input against a JSON Schema, and fills in its defaults; one that cannot be used is an issue. */
function inputCheck(
  inputs: WorkflowDefinition['inputs'],
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
    const parsed = inTime(() => schema.safeParse(input));
    if (parsed.success) return parsed.data as JsonValue;
    throw invalidInput(problemsOf(parsed.error.issues, input) as Array<{ path: Path; message: string }>);
  };
}

/** A schema may hold a pattern that backtracks for ever. */
function inTime<T>(check: () => T): T {
  try {
    return withinTime(check, 500);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw invalidInput([{ path: [], message: `could not be checked: ${error.message}` }]);
  }
}

/** VALIDATION_ERROR with the place of every fault in `details.issues`: `input.items[0].sku`. */
export function invalidInput(issues: ReadonlyArray<{ path: Path; message: string }>): PlatformError {
  const told = issues.map(({ path, message }) => ({ path: formatPath(['input', ...path]), message }));
  return new PlatformError('VALIDATION_ERROR', `${told[0]!.path}: ${told[0]!.message}`, {
    details: { issues: told },
  });
}

/** JSON with the keys of every object in order, so that equal definitions have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

/** The text of a definition that runs are pinned to, and its hash. */
export function pinned(definition: object): Pick<CompiledWorkflow, 'hash' | 'body'> {
  const body = canonicalJson(definition);
  return { body, hash: createHash('sha256').update(body).digest('hex') };
}
