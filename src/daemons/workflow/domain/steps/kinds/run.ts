import { EXPRESSION_OPENING } from '../../../../../contracts/index.ts';
import { ScriptInput } from '../../../../../contracts/script-step.ts';
import { problemsOf } from '../../../../../kit/data/schema-problems.ts';
import { hours } from '../../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import type { StepCall, StepKind } from '../step-kind.ts';
import { type Issue, invalid } from './wait-input.ts';

export const SCRIPT_KIND = 'run';
const DEFAULT_TIMEOUT_MS = hours(1);
const MAX_VALUE_CHARS = 32 * 1024;
const MAX_ENV_CHARS = 256 * 1024;

export interface ScriptCall extends Pick<StepCall, 'signal' | 'begun' | 'log'> {
  runId: string;
  tenantId: string;
  shell: NonNullable<ScriptInput['shell']>;
  script: string;
  env: Record<string, string>;
  network: boolean;
  /** Memory limit of the step. The operator's limit can be lower. */
  memoryMb: number | undefined;
}

/** Runs a script and returns its outputs. */
export type RunScript = (call: ScriptCall) => Promise<Record<string, string>>;

/** Creates the step kind that runs a script in a sandbox. @spec docs/workflows.md "Scripts" */
export function runStep(run: RunScript): StepKind {
  return {
    name: SCRIPT_KIND,
    mode: 'effect',
    takesSlot: true,
    reportsBegin: true,
    takesSecrets: true,
    defaultTimeoutMs: DEFAULT_TIMEOUT_MS,
    check: issuesOf,
    isIdempotent: () => false,
    async run({ input, run: { id, tenantId }, stepId, attempt, idempotencyKey, ...call }) {
      const { script, shell = 'bash', network = false, memoryMb } = input as unknown as ScriptInput;
      const env = {
        ...environmentOf((input.env ?? {}) as Record<string, JsonValue>),
        SVC_RUN_ID: id,
        SVC_STEP_ID: stepId,
        SVC_ATTEMPT: String(attempt),
        ...(idempotencyKey === null ? {} : { SVC_IDEMPOTENCY_KEY: textOf('idempotencyKey', idempotencyKey) }),
      };
      const { signal, log, begun } = call;
      const shown = { runId: id, tenantId, shell, script, env, network, memoryMb };
      return { output: await run({ ...shown, signal, log, begun }) };
    },
  };
}

function issuesOf(input: Record<string, JsonValue>): Issue[] {
  const parsed = ScriptInput.safeParse(input);
  const issues = parsed.error
    ? problemsOf(parsed.error.issues, input).map(({ path, message }) => ({ path: path.map(String), message }))
    : [];
  if (typeof input.script === 'string' && input.script.includes(EXPRESSION_OPENING))
    issues.push({
      path: ['script'],
      message: `must not contain "${EXPRESSION_OPENING}": a value in the text could inject commands. Pass it by env, as in env: {TITLE: "\${{ input.title }}"}, and read it in the script, as in "$TITLE"`,
    });
  return issues;
}

/** Returns the variables of a script. Objects and lists become JSON. Throws StepFailure for unusable values. */
function environmentOf(env: Record<string, JsonValue>): Record<string, string> {
  const texts = Object.entries(env).map(([name, value]) => [name, textOf(`env.${name}`, value)] as const);
  const chars = texts.reduce((sum, [name, text]) => sum + name.length + text.length, 0);
  if (chars > MAX_ENV_CHARS)
    throw invalid(
      `"env" has ${chars} characters; the limit is ${MAX_ENV_CHARS}. Pass large values as files.`,
    );
  return Object.fromEntries(texts);
}

function textOf(name: string, value: JsonValue): string {
  const text = typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
  if (text.length > MAX_VALUE_CHARS)
    throw invalid(`"${name}" has ${text.length} characters; the limit is ${MAX_VALUE_CHARS}.`);
  // A NUL would end the option of the sandbox that sets the variable.
  if (text.includes('\0')) throw invalid(`"${name}" contains a NUL character, which no variable can have.`);
  return text;
}
