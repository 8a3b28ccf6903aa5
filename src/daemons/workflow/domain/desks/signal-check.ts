import { LIMITS } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { checkedValue } from '../definition/checked-value.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { CheckCodeInput } from '../starts/run-starter.ts';

/** The payload as its run takes it, defaults filled in. Throws VALIDATION_ERROR, EXPRESSION_LIMIT_EXCEEDED. */
export type CheckSignal = (run: RunRecord, name: string, payload: JsonValue) => Promise<JsonValue>;

/** Holds payloads against the schemas of the definition that the run keeps to, and of its code. */
export function createSignalCheck(deps: {
  definitions: Pick<Definitions, 'byHash'>;
  evaluator: Evaluator;
  checkCode: CheckCodeInput;
}): CheckSignal {
  const { definitions, evaluator, checkCode } = deps;

  /** Undefined for a definition that is lost: such a run fails of that. */
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

/** A step that is given more than a step may hand on would fail its run later. Throws PAYLOAD_TOO_LARGE. */
export function requireHandOn(what: string, output: JsonValue): void {
  const chars = JSON.stringify(output).length;
  const limit = LIMITS.stepOutputChars;
  if (chars <= limit) return;
  throw new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `${what} takes ${chars} characters as JSON; a step may hand on ${limit}. Keep large data elsewhere and hand on where.`,
    { details: { chars, limit } },
  );
}
