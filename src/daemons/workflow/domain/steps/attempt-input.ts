import type { Clock } from '../../../../kit/time/clock.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { RunEvaluations } from '../run/run-evaluations.ts';
import type { RunJournal } from '../run/run-journal.ts';
import { type StepPart, stepIdOf } from '../run/run-parts.ts';
import type { RunScopes } from '../run/run-scopes.ts';
import { attemptSpan } from '../run/run-trace.ts';
import { evaluationFailure, type StepFailure } from './retry-policy.ts';
import type { StepCall } from './step-kind.ts';

export interface AttemptInputDeps {
  run: RunRecord;
  journal: RunJournal;
  scopes: RunScopes;
  evaluations: RunEvaluations;
  clock: Clock;
}

/** Builds the input of an attempt: evaluated values, idempotency key and context. */
export function createAttemptInput({ run, journal, scopes, evaluations, clock }: AttemptInputDeps) {
  const { scopeOf, stateOf } = scopes;

  function callOf(
    part: StepPart,
    values: Record<string, JsonValue>,
    signal: AbortSignal,
    begun: () => void,
  ): StepCall {
    const { record, step } = part;
    const { attempts } = record;
    return {
      run: {
        id: run.id,
        tenantId: run.tenantId,
        workflowId: run.workflowId,
        hostId: run.hostId,
        requestId: run.requestId,
        traceId: run.traceId,
        // Computed lazily: steps that run in place make no calls.
        get spanId() {
          return attemptSpan(run.id, stepIdOf(part), attempts);
        },
        depth: run.depth,
      },
      stepId: stepIdOf(part),
      attempt: attempts,
      failures: record.failures,
      uses: step.uses,
      input: values,
      idempotencyKey: record.idempotencyKey,
      timeoutMs: step.timeoutMs,
      signal,
      alone: part.losses > 0,
      begun,
      now: clock.now(),
      log(level, message) {
        journal.log({ level, message, job: record.jobKey, step: step.id });
        if (part.abort) void journal.flush();
      },
    };
  }

  function givenNow(part: StepPart): Record<string, JsonValue> | StepFailure | undefined {
    const { record, step } = part;
    const scope = scopeOf(part.job, stateOf(part.job));
    try {
      const key = step.idempotencyKey && evaluations.now(step.idempotencyKey, scope);
      const values = key === undefined ? undefined : evaluations.now(step.with, scope);
      if (!values) return undefined;
      record.idempotencyKey = key ? String(key.value) : null;
      return values.value as Record<string, JsonValue>;
    } catch (error) {
      return evaluationFailure(error);
    }
  }

  /** Evaluates in a thread. The key is durable before the work begins. Undefined when another boot owns the run. */
  async function givenLater(part: StepPart): Promise<Record<string, JsonValue> | StepFailure | undefined> {
    const { record, step } = part;
    const scope = scopeOf(part.job, stateOf(part.job));
    try {
      const key = step.idempotencyKey && (await evaluations.confined(step.idempotencyKey, scope));
      const values = key === undefined ? undefined : await evaluations.confined(step.with, scope);
      if (!values) return undefined;
      record.idempotencyKey = key ? String(key.value) : null;
      if (!step.kind.reportsBegin) noteBegun(part);
      journal.touch(part);
      return (await journal.flush()) ? (values.value as Record<string, JsonValue>) : undefined;
    } catch (error) {
      return evaluationFailure(error);
    }
  }

  function noteBegun({ record }: StepPart): void {
    record.attemptAt = clock.now();
    record.startedAt ??= record.attemptAt;
  }

  return { callOf, givenNow, givenLater, noteBegun };
}
