import type { RunError } from '../../../../contracts/index.ts';
import { redactJson } from '../../../../kit/telemetry/redact.ts';
import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import type { Scope } from '../definition/expressions.ts';

/** Returns the variables of the expressions in `on.failure` and `on.success`. Secrets in the error are masked. */
export function endScope(run: RunRecord): Scope {
  return {
    input: JSON.parse(run.input),
    run: factsOf(run),
    matrix: {},
    steps: {},
    needs: {},
    jobs: {},
    state: 'success',
  };
}

function factsOf(run: RunRecord): Record<string, JsonValue> {
  const { id, workflowId, tenantId, status, trigger, priority, depth, traceId, labels, output } = run;
  const { createdAt, startedAt, finishedAt } = run;
  const error = run.error === null ? null : (JSON.parse(run.error) as RunError);
  const step = error?.details.step;
  return {
    ...{ id, workflowId, tenantId, status, trigger, priority, depth, traceId },
    ...{ createdAt, startedAt, finishedAt },
    labels: labels === null ? {} : JSON.parse(labels),
    output: output === null ? null : JSON.parse(output),
    error: error && shownError(error, tenantId),
    failedStep: typeof step === 'string' ? step : null,
  };
}

/** `cause` is the code of the error of the failed step. */
function shownError({ code, message, details }: RunError, tenantId: string): Record<string, JsonValue> {
  const cause = (details.error as Partial<RunError> | null | undefined)?.code;
  return redactJson({ code, message, cause: typeof cause === 'string' ? cause : null }, tenantId);
}
