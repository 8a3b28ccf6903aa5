import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { type PluginAway, pluginAwayOf } from '../plugin-away.ts';
import type { StepKind } from '../step-kind.ts';
import { agentsOf } from './approval.ts';
import {
  afterDuration,
  durationIssues,
  END_OF_TIME,
  invalid,
  later,
  NO_LIMIT_MS,
  PURE,
  textOf,
  timeLimit,
  timeoutIssues,
  unknownKeys,
} from './wait-input.ts';

/** Step kind that outputs its evaluated `with` object. */
export const setStep: StepKind = {
  ...PURE,
  name: 'set',
  mode: 'instant',
  check: () => [],
  run: ({ input }) => ({ output: input }),
};

const WAIT_KEYS = ['for', 'ms', 'until'];

/** Waits for the duration `for`, `ms` milliseconds, or until the time `until` (ISO 8601 or epoch milliseconds). */
export const waitStep: StepKind = {
  ...PURE,
  name: 'wait',
  mode: 'wait',
  check: (input) => [
    ...unknownKeys(input, WAIT_KEYS),
    ...(WAIT_KEYS.filter((key) => key in input).length === 1
      ? durationIssues(input, 'for')
      : [{ path: [], message: 'give one of "for", "ms" and "until"' }]),
  ],
  run({ input, now }) {
    if ('for' in input)
      return { wait: { for: 'time' }, until: afterDuration(now, input.for, 'The length of the wait') };
    if ('ms' in input) return { wait: { for: 'time' }, until: later(now, input.ms, 'ms') };
    return { wait: { for: 'time' }, until: timeOf(input.until), byWallClock: true };
  },
};

/**
 * Waits for a named signal. A signal that arrived before the step began also ends the wait. `compileSignals` checks
 * `form` and `approvers`.
 */
export const signalStep: StepKind = {
  ...PURE,
  name: 'signal',
  mode: 'wait',
  check: (input) => [
    ...unknownKeys(input, ['name', 'timeout', 'timeoutMs', 'form', 'approvers', 'agents']),
    ...timeoutIssues(input),
    ...('name' in input ? [] : [{ path: ['name'], message: 'is required: the signal to wait for' }]),
  ],
  run: ({ input, now }) => ({
    wait: { for: 'signal', name: textOf(input.name), ...agentsOf(input.agents) },
    until: timeLimit(input, now),
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

function timeOf(value: JsonValue | undefined): number {
  const time = typeof value === 'number' ? value : typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (Math.abs(time) <= END_OF_TIME) return Math.ceil(time);
  throw invalid(`"until" must be an ISO 8601 time or epoch milliseconds, not ${JSON.stringify(value)}.`);
}
