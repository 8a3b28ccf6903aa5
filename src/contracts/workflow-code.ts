import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { ErrorClass, RetryPolicy } from './retry-policy.ts';
import { AnyJson } from './workflow-fields.ts';
import { EpochMs, RunError } from './workflow-records.ts';

// Protocol between a running workflow function and the workflow service. The function requests each step by name. The
// service stores the results and decides how the run continues. @spec docs/workflows.md "Workflows in code"

/** Options of `ctx.step`. Other kinds of steps accept a subset of these options. */
export const CodeStepOptions = z.strictObject({
  retry: RetryPolicy.optional(),
  timeoutMs: z.number().int().positive().max(3600_000).optional(),
  idempotent: z.boolean().optional(),
  idempotencyKey: z.string().min(1).max(1024).optional(),
  /** Whether an operator must decide before an interrupted step runs again. */
  once: z.boolean().optional(),
});

/** Message that the workflow function has reached a step. */
export const EnterStep = z.strictObject({
  id: z.string().min(1).max(200),
  /**
   * Branch of the function, or '' for the main branch. `place` is the index of the step in the branch. Both values
   * reveal code changes between replays.
   */
  branch: z.string().max(500),
  place: z.number().int().min(0),
  uses: z.string().min(1).max(512),
  with: z.record(z.string(), AnyJson),
  options: CodeStepOptions,
  /**
   * Whether the step inherits the workflow's default `retry`. An inherited `retry` alone does not permit repeating the
   * step after an interruption.
   */
  inheritsRetry: z.literal(true).optional(),
  /**
   * Whether the step is passed to `ctx.all` directly and has no function of its own, such as a sleep. The next replay
   * starts only after all items of `ctx.all` have ended.
   */
  joint: z.literal(true).optional(),
  /** Whether this is a clean-up step, which runs even after the run was cancelled or timed out. */
  cleanUp: z.literal(true).optional(),
});
export type EnterStep = z.infer<typeof EnterStep>;

/** Message with the outcome of a step's own function. */
export const SettleStep = z.strictObject({
  id: z.string().min(1).max(200),
  attempt: z.number().int().min(1),
  outcome: z.union([
    z.strictObject({ output: AnyJson }),
    z.strictObject({
      error: RunError,
      errorClass: ErrorClass.optional(),
      retryAfterMs: z.number().positive().optional(),
    }),
  ]),
});
export type SettleStep = z.infer<typeof SettleStep>;

/**
 * Fields of finished steps. `order` numbers the steps in the sequence in which they finished. Replays return the
 * results in this sequence.
 */
const ended = { order: z.number().int().positive(), at: EpochMs };

/**
 * Reply to a step request. For `run`, the caller must execute the step's function now. For `wait`, the caller must
 * repeat the request when `ReadySteps` lists the step, or in the next replay.
 */
export const StepAnswer = z.discriminatedUnion('state', [
  z.object({ state: z.literal('done'), output: AnyJson, ...ended }),
  z.object({ state: z.literal('failed'), status: z.string(), error: RunError, ...ended }),
  z.object({
    state: z.literal('run'),
    attempt: z.number().int(),
    idempotencyKey: z.string(),
    timeoutMs: z.number(),
  }),
  z.object({ state: z.literal('wait') }),
]);
export type StepAnswer = z.infer<typeof StepAnswer>;

/** Step that the function reached in an earlier replay, with the `StepAnswer` of the service. */
export const RecalledStep = z.object({
  ...{ id: z.string(), branch: z.string(), place: z.number().int(), uses: z.string() },
  answer: StepAnswer,
});
export type RecalledStep = z.infer<typeof RecalledStep>;

/** Page of recalled steps. `next` is the position of the next page, or null on the last page. */
export const RecalledSteps = z.object({ steps: z.array(RecalledStep), next: z.number().int().nullable() });
export type RecalledSteps = z.infer<typeof RecalledSteps>;

/**
 * `ready` lists waiting steps that the function must request again. `stop` lists running steps to abort. Both lists are
 * empty after a timeout of the request.
 */
export const ReadySteps = z.object({ ready: z.array(z.string()), stop: z.array(z.string()) });
export type ReadySteps = z.infer<typeof ReadySteps>;

const missed = z
  .string()
  .max(200)
  .optional()
  .describe('The first recalled step that the function did not reach');

/** Outcome of one replay of the workflow function. */
export const ReplayEnd = z.discriminatedUnion('end', [
  z.object({ end: z.literal('suspended') }),
  z.object({ end: z.literal('returned'), output: AnyJson, missed }),
  z.object({
    end: z.literal('threw'),
    error: RunError,
    step: z.string().max(200).optional().describe('The step with the uncaught failure'),
    cancelled: z.literal(true).optional().describe('It threw a CancelledError'),
  }),
  z.object({ end: z.literal('strayed').describe('The function no longer reaches a finished step'), missed }),
  z.object({ end: z.literal('broke'), message: z.string().describe('Why the replay failed') }),
]);
export type ReplayEnd = z.infer<typeof ReplayEnd>;

/** Replay parameters in the host context of a workflow function. */
export interface ReplayContext {
  /** Proves that a call belongs to the current replay. */
  token: string;
  /** Seed of `ctx.random`, which is the same in each replay. */
  seed: string;
  /** Initial value of `ctx.now`, in epoch ms. */
  startedAt: number;
  /**
   * Number of steps that finished before this replay. Log lines and events are suppressed until the function has
   * reached these steps again.
   */
  remembered: number;
  /** Whether earlier replays have recorded steps. If so, the runner fetches these steps in advance. */
  recalls?: true;
  /**
   * Whether an earlier execution of the function might have crashed the service. If so, the start of this replay is
   * stored before the function runs.
   */
  marksBegin?: true;
}

const call = { runId: z.string().max(128), token: z.string().max(128) };
/**
 * Common properties of internal endpoints, which services call during replays. The gateway does not forward requests to
 * these endpoints.
 */
const internal = {
  method: 'POST',
  errors: [
    'UNAUTHORIZED',
    'CONFLICT',
    'VALIDATION_ERROR',
    'WORKFLOW_DEFINITION_CHANGED',
    'UPSTREAM_UNAVAILABLE',
  ],
} as const;

export const enterCodeStep = endpoint({
  ...internal,
  path: '/internal/workflows/steps/enter',
  summary: 'Report that a function reached a step',
  body: z.strictObject({ ...call, step: EnterStep }),
  reply: StepAnswer,
});

export const recallCodeSteps = endpoint({
  ...internal,
  path: '/internal/workflows/steps/recall',
  summary: 'List the steps of earlier replays',
  body: z.strictObject({ ...call, after: z.number().int().min(0) }),
  reply: RecalledSteps,
});

export const settleCodeStep = endpoint({
  ...internal,
  path: '/internal/workflows/steps/settle',
  summary: "Report the outcome of a step's function",
  body: z.strictObject({ ...call, step: SettleStep }),
  reply: StepAnswer,
});

/** Starts the time limit of the workflow function. */
export const beginCodeReplay = endpoint({
  ...internal,
  path: '/internal/workflows/steps/begin',
  summary: 'Report that a function started',
  body: z.strictObject(call),
  reply: z.object({ begun: z.literal(true) }),
});

export const watchCodeSteps = endpoint({
  ...internal,
  path: '/internal/workflows/steps/watch',
  summary: 'Wait until a waiting step is ready',
  body: z.strictObject(call),
  reply: ReadySteps,
});
