import { MAX_FORM_CHARS, ROLES, type StepWait } from '../../../../../contracts/index.ts';
import { isRecord } from '../../../../../kit/data/is-record.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import type { StepKind } from '../step-kind.ts';
import { type Issue, invalid, PURE, textOf, timeLimit, timeoutIssues, unknownKeys } from './wait-input.ts';

export interface ApprovalDeps {
  /** Returns the reason why a JSON Schema is unusable, or undefined. */
  schemaFault(schema: object): string | undefined;
  /** Opening characters of an expression in a value. */
  opening: string;
}

/** Creates the step kind that waits for a person, who can have to fill in a form. @spec docs/workflows.md "Forms" */
export function approvalStep({ schemaFault, opening }: ApprovalDeps): StepKind {
  const formFault: Fault = (value) => {
    const shapeFault = formShapeFault(value);
    if (shapeFault !== undefined) return shapeFault;
    const fault = schemaFault(value as object);
    return fault && `is not a JSON Schema that can be used: ${fault}`;
  };
  /** Returns the fault of a value without expressions. Others are checked when the step begins. */
  const issuesOf = (key: string, value: JsonValue | undefined, faultOf: Fault): Issue[] => {
    if (value == null || JSON.stringify(value).includes(opening)) return [];
    const fault = faultOf(value);
    return fault === undefined ? [] : [{ path: [key], message: fault }];
  };
  return {
    ...PURE,
    name: 'approval',
    mode: 'wait',
    check: (input) => [
      ...unknownKeys(input, ['message', 'timeout', 'timeoutMs', 'form', 'approvers', 'agents']),
      ...timeoutIssues(input),
      ...issuesOf('form', input.form, formFault),
      ...issuesOf('approvers', input.approvers, approversFault),
      ...issuesOf('agents', input.agents, agentsFault),
    ],
    run: ({ input, now }) => ({
      wait: {
        for: 'approval',
        ...(input.message == null ? {} : { message: textOf(input.message) }),
        ...checked('form', input.form, formFault),
        ...checked('approvers', input.approvers, approversFault),
        ...agentsOf(input.agents),
      },
      until: timeLimit(input, now),
    }),
  };
}

type Fault = (value: JsonValue) => string | undefined;

function checked(
  key: 'form' | 'approvers',
  value: JsonValue | undefined,
  faultOf: Fault,
): Pick<StepWait, 'form' | 'approvers'> {
  if (value == null) return {};
  const fault = faultOf(value);
  if (fault !== undefined) throw invalid(`"${key}" ${fault}.`);
  return { [key]: value };
}

/** Returns why a value is no form, apart from faults of its JSON Schema. */
export function formShapeFault(value: JsonValue): string | undefined {
  if (!isRecord(value) || value.type !== 'object') return 'must be a JSON Schema with type: object';
  const chars = JSON.stringify(value).length;
  return chars > MAX_FORM_CHARS
    ? `takes ${chars} characters as JSON; the limit is ${MAX_FORM_CHARS}`
    : undefined;
}

function agentsFault(value: JsonValue): string | undefined {
  return typeof value === 'boolean' ? undefined : 'must be true or false';
}

/** Returns whether agents may end the wait, as the field of the wait. */
export function agentsOf(value: JsonValue | undefined): Pick<StepWait, 'agents'> {
  if (value == null) return {};
  const fault = agentsFault(value);
  if (fault !== undefined) throw invalid(`"agents" ${fault}.`);
  return value === true ? { agents: true } : {};
}

export function approversFault(value: JsonValue): string | undefined {
  const roles = isRecord(value) && Object.keys(value).length === 1 ? value.roles : undefined;
  const isValid =
    Array.isArray(roles) &&
    roles.length > 0 &&
    roles.every((role) => (ROLES as readonly unknown[]).includes(role));
  return isValid ? undefined : `must be {roles: […]} with one or more of ${ROLES.join(', ')}`;
}
