import { LIMITS } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { checkedValue } from '../definition/checked-value.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { CheckCodeInput } from '../starts/run-admission.ts';

/** Returns the payload with defaults filled in. Throws VALIDATION_ERROR and EXPRESSION_LIMIT_EXCEEDED. */
export type CheckSignal = (run: RunRecord, name: string, payload: JsonValue) => Promise<JsonValue>;

/** Returns a check of payloads against the schemas of the run's pinned definition and of the workflow's code. */
export function createSignalCheck(deps: {
  definitions: Pick<Definitions, 'byHash'>;
  evaluator: Evaluator;
  checkCode: CheckCodeInput;
}): CheckSignal {
  const { definitions, evaluator, checkCode } = deps;

  /** Returns the run's workflow; undefined if its definition is lost. Such a run fails on its next claim. */
  async function workflowOf({ definitionHash }: RunRecord): Promise<CompiledWorkflow | undefined> {
    try {
      return await definitions.byHash(definitionHash);
    } catch (error) {
      if (isLostDefinition(error)) return undefined;
      throw error;
    }
  }

  return async (run, name, payload) => {
    const { tenantId } = run;
    const workflow = await workflowOf(run);
    const schema = workflow?.signalSchemas.get(name) ?? null;
    const checked = await checkedValue(evaluator, schema, payload, { part: 'payload', tenantId });
    if (workflow?.code) await checkCode(workflow.code, checked, { tenantId, signal: name });
    return checked;
  };
}

/**
 * Throws PAYLOAD_TOO_LARGE for a value that is larger than a step's output may be, because the value would fail the run
 * later.
 */
export function requireOutputSize(what: string, output: JsonValue): void {
  const chars = JSON.stringify(output).length;
  const limit = LIMITS.stepOutputChars;
  if (chars <= limit) return;
  throw new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `${what} takes ${chars} characters as JSON; the limit is ${limit}. Store large data elsewhere and send a reference.`,
    { details: { chars, limit } },
  );
}
