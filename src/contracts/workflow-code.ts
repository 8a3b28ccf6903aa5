import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { AnyJson, ErrorClass, RetryPolicy } from './workflow-definition.ts';
import { EpochMs, RunError } from './workflow-records.ts';

/**
 * What a workflow's function and the workflow service say to each other while it runs: the function asks for each step
 * by name, the service remembers and decides. @spec docs/workflows.md "Workflows in code"
 */

/** How `ctx.step` runs its function; the others take what concerns them. */
export const CodeStepOptions = z.strictObject({
  retry: RetryPolicy.optional(),
  timeoutMs: z.number().int().positive().max(3600_000).optional(),
  idempotent: z.boolean().optional(),
  idempotencyKey: z.string().min(1).max(1024).optional(),
  /** After an interruption an operator decides whether it runs again. */
  once: z.boolean().optional(),
});

/** A step that the function came to. */
export const EnterStep = z.strictObject({
  id: z.string().min(1).max(200),
  /** The branch of the function, '' for its trunk, and the step's place in it: what a changed body is noticed by. */
  branch: z.string().max(500),
  place: z.number().int().min(0),
  uses: z.string().min(1).max(512),
  with: z.record(z.string(), AnyJson),
  options: CodeStepOptions,
  /** Its `retry` is the default of the workflow's steps, which is no consent to repeat this one. */
  inheritsRetry: z.literal(true).optional(),
  /** It is an item of `ctx.all`: the function goes on only once all such items have ended. */
  joint: z.literal(true).optional(),
  /** It is part of a clean-up: it runs, and goes on, also once the run is being ended. */
  cleanUp: z.literal(true).optional(),
});
export type EnterStep = z.infer<typeof EnterStep>;

/** How a step's own function ended. */
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

/** Of a step that has ended: `order` is its place among those of the run, in which the function is told of them. */
const ended = { order: z.number().int().positive(), at: EpochMs };

/** `run`: its function may begin. `wait`: it is asked for again when the watch, or the next pass, says so. */
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

/** A step that the function came to in an earlier pass, with the answer to it. */
export const RecalledStep = z.object({
  ...{ id: z.string(), branch: z.string(), place: z.number().int(), uses: z.string() },
  answer: StepAnswer,
});
export type RecalledStep = z.infer<typeof RecalledStep>;

/** A page of them; `next` is where the following one begins, null after the last. */
export const RecalledSteps = z.object({ steps: z.array(RecalledStep), next: z.number().int().nullable() });
export type RecalledSteps = z.infer<typeof RecalledSteps>;

/** `ready`: waiting steps to be asked for again. `stop`: steps at work whose signal is to abort. Both are empty when a while has gone by. */
export const ReadySteps = z.object({ ready: z.array(z.string()), stop: z.array(z.string()) });
export type ReadySteps = z.infer<typeof ReadySteps>;

const missed = z.string().max(200).optional().describe('The first recalled step that it did not come to');

/** How one pass through the function ended. */
export const PassEnd = z.discriminatedUnion('end', [
  z.object({ end: z.literal('suspended') }),
  z.object({ end: z.literal('returned'), output: AnyJson, missed }),
  z.object({
    end: z.literal('threw'),
    error: RunError,
    step: z.string().max(200).optional().describe('The step whose failure nobody caught'),
    cancelled: z.literal(true).optional().describe('It threw that it was cancelled'),
  }),
  z.object({ end: z.literal('strayed').describe('It no longer comes to a step that had ended'), missed }),
  z.object({ end: z.literal('broke'), message: z.string().describe('What kept the pass from its run') }),
]);
export type PassEnd = z.infer<typeof PassEnd>;

/** What a pass is told beside the host context of a step. */
export interface PassContext {
  /** Proves that a call belongs to the pass under way, and to no earlier one. */
  token: string;
  /** What chance is drawn from, the same in each pass. */
  seed: string;
  /** Where the function's time begins. */
  startedAt: number;
  /** Steps that have ended: until as many were met again, nothing new happens. */
  remembered: number;
  /** There are steps to be recalled. */
  recalls?: true;
  /** The function begins only once the run has noted that it does: the service may have died of it before. */
  marksBegin?: true;
}

const call = { runId: z.string().max(128), token: z.string().max(128) };
/** Of the service itself, for the daemons that run passes for it; no gateway forwards these paths. */
const internal = {
  method: 'POST',
  errors: ['UNAUTHORIZED', 'CONFLICT', 'VALIDATION_ERROR', 'WORKFLOW_DEFINITION_CHANGED'],
} as const;

export const enterCodeStep = endpoint({
  ...internal,
  path: '/internal/workflows/steps/enter',
  summary: 'A function came to a step',
  body: z.strictObject({ ...call, step: EnterStep }),
  reply: StepAnswer,
});

export const recallCodeSteps = endpoint({
  ...internal,
  path: '/internal/workflows/steps/recall',
  summary: 'A replay is told of the steps of earlier passes',
  body: z.strictObject({ ...call, after: z.number().int().min(0) }),
  reply: RecalledSteps,
});

export const settleCodeStep = endpoint({
  ...internal,
  path: '/internal/workflows/steps/settle',
  summary: "A step's function ended",
  body: z.strictObject({ ...call, step: SettleStep }),
  reply: StepAnswer,
});

/** The function begins: from here on its time counts. */
export const beginCodePass = endpoint({
  ...internal,
  path: '/internal/workflows/steps/begin',
  summary: 'A pass through a function began',
  body: z.strictObject(call),
  reply: z.object({ begun: z.literal(true) }),
});

export const watchCodeSteps = endpoint({
  ...internal,
  path: '/internal/workflows/steps/watch',
  summary: 'Waits until a waiting step is to be asked for again',
  body: z.strictObject(call),
  reply: ReadySteps,
});
