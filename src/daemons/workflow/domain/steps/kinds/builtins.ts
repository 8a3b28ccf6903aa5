import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { days } from '../../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { type PluginAway, pluginAwayOf } from '../plugin-away.ts';
import { StepFailure } from '../retry-policy.ts';
import type { StepKind } from '../step-kind.ts';

/** Longest timeout that a definition accepts. A step with this timeout has no time limit. */
const NO_LIMIT_MS = days(366);
const PURE = { takesSlot: false, defaultTimeoutMs: NO_LIMIT_MS, isIdempotent: () => true } as const;
type Issue = { path: string[]; message: string };

/** Step kind that outputs its evaluated `with` object. */
export const setStep: StepKind = {
  ...PURE,
  name: 'set',
  mode: 'instant',
  check: () => [],
  run: ({ input }) => ({ output: input }),
};

/** Waits `ms` milliseconds, or until the time `until` (ISO 8601 or epoch milliseconds). */
export const waitStep: StepKind = {
  ...PURE,
  name: 'wait',
  mode: 'wait',
  check: (input) => [
    ...unknownKeys(input, ['ms', 'until']),
    ...(('ms' in input ? 1 : 0) + ('until' in input ? 1 : 0) === 1
      ? []
      : [{ path: [], message: 'give either "ms" or "until"' }]),
  ],
  run({ input, now }) {
    if ('ms' in input) return { wait: { for: 'time' }, until: later(now, input.ms, 'ms') };
    return { wait: { for: 'time' }, until: timeOf(input.until), byWallClock: true };
  },
};

export const approvalStep: StepKind = {
  ...PURE,
  name: 'approval',
  mode: 'wait',
  check: (input) => unknownKeys(input, ['message', 'timeoutMs']),
  run: ({ input, now }) => ({
    wait: { for: 'approval', ...(input.message == null ? {} : { message: textOf(input.message) }) },
    until: timeLimit(input.timeoutMs, now),
  }),
};

/** Waits for a named signal. A signal that arrived before the step began also ends the wait. */
export const signalStep: StepKind = {
  ...PURE,
  name: 'signal',
  mode: 'wait',
  check: (input) => [
    ...unknownKeys(input, ['name', 'timeoutMs']),
    ...('name' in input ? [] : [{ path: ['name'], message: 'is required: the signal to wait for' }]),
  ],
  run: ({ input, now }) => ({
    wait: { for: 'signal', name: textOf(input.name) },
    until: timeLimit(input.timeoutMs, now),
  }),
};

/**
 * Runs another workflow as a child run and returns its output. The timeout of the step limits the duration of the child
 * run.
 */
export const workflowStep: StepKind = {
  ...PURE,
  name: 'workflow',
  mode: 'effect',
  check: (input) => [
    ...unknownKeys(input, ['id', 'input']),
    ...('id' in input ? [] : [{ path: ['id'], message: 'is required: the workflow to run' }]),
  ],
  async run({ input, timeoutMs, now, startChild }) {
    try {
      const runId = await startChild(textOf(input.id), input.input ?? {});
      return { wait: { for: 'child', runId }, until: timeoutMs < NO_LIMIT_MS ? now + timeoutMs : null };
    } catch (error) {
      throw childPluginAway(error) ?? error;
    }
  },
};

function childPluginAway(thrown: unknown): PluginAway | undefined {
  const pluginId = thrown instanceof PlatformError ? thrown.details.pluginId : undefined;
  return typeof pluginId === 'string' ? pluginAwayOf(thrown, pluginId) : undefined;
}

function unknownKeys(input: Record<string, JsonValue>, known: string[]): Issue[] {
  return Object.keys(input)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: [key], message: `is unknown; the known fields are ${known.join(', ')}` }));
}

function invalid(message: string): StepFailure {
  return new StepFailure('validation', { code: 'VALIDATION_ERROR', message, details: {} });
}

/** Latest time that a Date can represent, in ms since the epoch. */
const END_OF_TIME = 8.64e15;

function later(now: number, value: JsonValue | undefined, name: string): number {
  const ms = typeof value === 'string' ? Number(value) : value;
  if (typeof ms === 'number' && ms >= 0 && now + ms <= END_OF_TIME) return Math.ceil(now + ms);
  throw invalid(`"${name}" must be a number of milliseconds, not ${JSON.stringify(value)}.`);
}

function timeOf(value: JsonValue | undefined): number {
  const time = typeof value === 'number' ? value : typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (Math.abs(time) <= END_OF_TIME) return Math.ceil(time);
  throw invalid(`"until" must be an ISO 8601 time or epoch milliseconds, not ${JSON.stringify(value)}.`);
}

function timeLimit(value: JsonValue | undefined, now: number): number | null {
  return value == null ? null : later(now, value, 'timeoutMs');
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  throw invalid(`A text is needed here, not ${JSON.stringify(value)}.`);
}
