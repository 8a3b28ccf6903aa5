import type { CallVia, Role, StepWait } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { checkedValue } from '../definition/checked-value.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import { compileInputSchema } from '../definition/input-schema.ts';
import { requireAgents, requireRole } from './required-role.ts';
import { requireOutputSize } from './signal-check.ts';

/** Answer to an approval, as the API receives it. */
export interface ApprovalAnswer {
  approved: boolean;
  by: string;
  comment: string | null;
  data?: JsonValue | undefined;
  via?: CallVia | undefined;
}

/** Validates an answer, and returns the output of the step. */
export type CheckApproval = (
  wait: StepWait,
  answer: ApprovalAnswer,
  who: { tenantId: string; role: Role | null | undefined },
) => Promise<Record<string, JsonValue>>;

/**
 * Returns the function that checks answers to approvals: the role of the approver, and the data against the form. Throws
 * FORBIDDEN, VALIDATION_ERROR or PAYLOAD_TOO_LARGE. @spec docs/workflows.md "Forms"
 */
export function createApprovalCheck(evaluator: Evaluator): CheckApproval {
  return async ({ form, approvers, agents }, { data, via, ...given }, { tenantId, role }) => {
    requireAgents('approval', agents, via);
    const answer = { ...given, ...(via ? { via } : {}) };
    if (approvers) requireRole('This approval', approvers.roles, role);
    if (!form) {
      if (data === undefined) return answer;
      throw new PlatformError('VALIDATION_ERROR', 'data: this approval has no form, so it takes no data.');
    }
    // A refusal needs no data, because the step fails.
    if (!answer.approved) return answer;
    const checked = await checkedValue(evaluator, compileInputSchema(form), data ?? {}, {
      part: 'data',
      tenantId,
    });
    const output = { ...answer, data: checked };
    requireOutputSize('The answer', output);
    return output;
  };
}
