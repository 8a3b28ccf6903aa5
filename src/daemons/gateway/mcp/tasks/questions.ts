import { includesRole, type Role, type RunStep, type StepWait } from '../../../../contracts/index.ts';
import { isRecord } from '../../../../kit/data/is-record.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { type FormField, fieldOf, isJsonText } from './form-fields.ts';

/** An approval or a signal for which a step waits, and which the person at the client can answer. */
export interface Question {
  /** Unique within the run, also among attempts of the step. */
  key: string;
  kind: 'approval' | 'signal';
  stepId: string;
  /** Name of the signal. */
  name: string;
  message: string;
  /** Flat form, the only kind that clients can show. */
  form: { type: 'object'; properties: Record<string, FormField>; required: string[] };
  /** Whether the answer is one value, in the field `payload`. */
  isSingle: boolean;
}

const PAYLOAD = 'payload';

/** Returns the questions of the waiting steps that a caller with this role may answer. */
export function questionsOf(runId: string, steps: readonly RunStep[], role: Role | null): Question[] {
  return steps.flatMap((step) => {
    const { status, waitingFor: wait } = step;
    if (status !== 'waiting' || (wait?.for !== 'approval' && wait?.for !== 'signal')) return [];
    const needed = wait.approvers?.roles;
    if (needed && !needed.some((one) => includesRole(role, one))) return [];
    return [questionOf(runId, step, wait)];
  });
}

function questionOf(runId: string, { id, attempts }: RunStep, wait: StepWait): Question {
  const kind = wait.for as Question['kind'];
  const name = wait.name ?? '';
  const place = `(Run ${runId}, step ${id}.`;
  const isSingle = kind === 'signal' && wait.form?.type !== 'object';
  return {
    ...{ key: `${id}#${attempts}`, kind, stepId: id, name, isSingle },
    message:
      kind === 'approval'
        ? `${wait.message ?? 'Approve this step?'}\n${place} Accept approves the step, decline refuses it.)`
        : `The run waits for "${name}".\n${place} Accept sends the signal.)`,
    form: formOf(wait.form, kind, isSingle),
  };
}

function formOf(form: StepWait['form'], kind: Question['kind'], isSingle: boolean): Question['form'] {
  const properties = isSingle ? { [PAYLOAD]: form ?? {} } : isRecord(form?.properties) ? form.properties : {};
  const required = !isSingle && Array.isArray(form?.required) ? form.required : [];
  const isEmpty = kind === 'approval' && !form;
  return {
    type: 'object',
    properties: isEmpty
      ? {}
      : Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, fieldOf(schema)])),
    required: required.filter(
      (name): name is string => typeof name === 'string' && Object.hasOwn(properties, name),
    ),
  };
}

/** Returns the data of an answer. Unknown fields are dropped. Throws VALIDATION_ERROR for a field that is not JSON. */
export function answerData(
  { form, isSingle }: Question,
  content: Record<string, unknown>,
): JsonValue | undefined {
  const data: Record<string, JsonValue> = {};
  for (const [name, field] of Object.entries(form.properties))
    if (Object.hasOwn(content, name)) data[name] = fieldValue(name, field, content[name] as JsonValue);
  if (isSingle) return data[PAYLOAD] ?? null;
  return Object.keys(form.properties).length === 0 ? undefined : data;
}

function fieldValue(name: string, field: FormField, value: JsonValue): JsonValue {
  if (!isJsonText(field) || typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as JsonValue;
  } catch {
    throw new PlatformError('VALIDATION_ERROR', `${name}: must be JSON, such as ["a", "b"] or {"a": 1}.`, {
      details: { field: name },
    });
  }
}
