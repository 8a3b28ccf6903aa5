import { LIMITS, type Role } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import { checkedValue } from '../definition/checked-value.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import { type Outline, partsOf, stepsOf } from '../run/parts.ts';
import type { CheckCodeInput } from '../starts/run-admission.ts';
import { requireAgents, requireRole } from './required-role.ts';

/** Checks of signals on arrival, also before a step waits for them. */
export interface SignalCheck {
  /** Throws FORBIDDEN if the sender of the signal needs a role that the caller does not have. */
  requireSender(run: RunRecord, name: string, role: Role | null | undefined): Promise<void>;
  /**
   * Validates a signal payload and returns the payload with defaults. Throws VALIDATION_ERROR or
   * EXPRESSION_LIMIT_EXCEEDED.
   */
  validate(run: RunRecord, name: string, payload: JsonValue): Promise<JsonValue>;
}

/** Creates the checks of signals. The schemas are in the definition and in the code of the run's workflow. */
export function createSignalCheck(deps: {
  definitions: Pick<Definitions, 'byHash'>;
  evaluator: Evaluator;
  checkCode: CheckCodeInput;
}): SignalCheck {
  const { definitions, evaluator, checkCode } = deps;

  /**
   * Returns the workflow of the run. Returns undefined if the definition is lost. The next claim then fails the run.
   */
  async function workflowOf({ definitionHash }: RunRecord): Promise<CompiledWorkflow | undefined> {
    try {
      return await definitions.byHash(definitionHash);
    } catch (error) {
      if (isLostDefinition(error)) return undefined;
      throw error;
    }
  }

  return {
    async requireSender(run, name, role) {
      const roles = (await workflowOf(run))?.signalApprovers.get(name);
      if (roles) requireRole(`The signal "${name}"`, roles, role);
    },
    async validate(run, name, payload) {
      const { tenantId } = run;
      const workflow = await workflowOf(run);
      const schema = workflow?.signalSchemas.get(name) ?? null;
      const checked = await checkedValue(evaluator, schema, payload, { part: 'payload', tenantId });
      if (workflow?.code) await checkCode(workflow.code, checked, { tenantId, signal: name });
      return checked;
    },
  };
}

/**
 * Throws PAYLOAD_TOO_LARGE if a value exceeds the size limit for step outputs. Otherwise, the value would fail the run
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

/** Throws FORBIDDEN unless steps wait for the signal and all of them allow agents. */
export function requireSignalForAgents(
  { loaded, workflow }: { loaded: LoadedRun; workflow: Outline },
  name: string,
): void {
  const waiting = stepsOf(partsOf(workflow, loaded)).filter(
    ({ wait, record }) => wait?.for === 'signal' && wait.name === name && record.status === 'waiting',
  );
  const isAllowed = waiting.length > 0 && waiting.every(({ wait }) => wait?.agents);
  requireAgents({ signal: name }, isAllowed || undefined, 'agent');
}
