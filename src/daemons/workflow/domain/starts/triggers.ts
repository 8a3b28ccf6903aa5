import { createHash } from 'node:crypto';
import type {
  DeliveredEvent,
  DeliveryStarts,
  RunId,
  TriggeringWebhook,
} from '../../../../contracts/index.ts';
import { type PlatformError, toPlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { CompiledTrigger, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { expressionFault } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Evaluable } from '../definition/templates.ts';
import type { Starter } from './run-admission.ts';
import type { RunStarter } from './run-starter.ts';
import { isRejectedByKey, isTransientStart } from './transient-start.ts';

export interface TriggersDeps {
  definitions: Definitions;
  starter: RunStarter;
  evaluator: Evaluator;
  logger: Logger;
}

/** Webhooks that start workflows. @spec docs/workflows.md "Started by a webhook" */
export class Triggers {
  readonly #deps: TriggersDeps;

  constructor(deps: TriggersDeps) {
    this.#deps = deps;
  }

  /** Returns the webhooks that start any workflow, without duplicates. */
  list(): TriggeringWebhook[] {
    const { definitions } = this.#deps;
    const all = [...definitions.registered.values()].flatMap(({ workflow }) => workflow.triggers);
    const distinct = new Map(all.map((trigger) => [`${trigger.pluginId} ${trigger.event}`, trigger]));
    return [...distinct.values()].map(({ pluginId, event }) => ({ pluginId, event }) as TriggeringWebhook);
  }

  /**
   * Starts the workflows that a webhook delivery triggers. Throws transient errors, so that the delivery is retried.
   * Returns permanent errors in `refused`.
   */
  async start(delivery: DeliveredEvent, who: Starter): Promise<DeliveryStarts> {
    const started: DeliveryStarts = { runs: [], refused: [] };
    for (const { workflow, trigger } of this.#matching(delivery)) {
      const workflowId = workflow.definition.id;
      try {
        const runId = await this.#startOne(workflow, trigger, delivery, who);
        if (runId) started.runs.push({ workflowId, runId });
      } catch (thrown) {
        const error = toPlatformError(thrown);
        if (isTransientStart(error)) throw thrown;
        this.#reportRefused(workflowId, error, delivery, who);
        started.refused.push({ workflowId, code: error.code, message: error.message });
      }
    }
    return started;
  }

  /**
   * Evaluates an expression. Reports a failure as a permanent error, because a retry with the same payload would also
   * fail.
   */
  async #evaluated<Value>(
    what: Evaluable<Value>,
    delivery: DeliveredEvent,
    tenantId: string,
  ): Promise<Value> {
    const { evaluator } = this.#deps;
    try {
      return await evaluator.evaluate(what, scopeOf(delivery), tenantId);
    } catch (error) {
      throw expressionFault(error);
    }
  }

  #matching({ pluginId, event, instanceId }: DeliveredEvent) {
    const { definitions } = this.#deps;
    return [...definitions.registered.values()].flatMap(({ workflow }) => {
      const trigger = workflow.triggers.find(
        (one) =>
          one.pluginId === pluginId &&
          one.event === event &&
          (one.instanceId === undefined || one.instanceId === instanceId),
      );
      return trigger ? [{ workflow, trigger }] : [];
    });
  }

  async #startOne(
    workflow: CompiledWorkflow,
    trigger: CompiledTrigger,
    delivery: DeliveredEvent,
    who: Starter,
  ): Promise<RunId | undefined> {
    const { starter } = this.#deps;
    if (!(await this.#evaluated(trigger.condition, delivery, who.tenantId))) return undefined;
    const input = await this.#evaluated(trigger.input, delivery, who.tenantId);
    const { id } = workflow.definition;
    const run = await starter.start(
      {
        kind: 'workflow',
        workflow,
        input,
        trigger: 'webhook',
        idempotency: { key: `${keyOf(delivery)}/${id}`, request: null },
      },
      who,
    );
    return run.id as RunId;
  }

  #reportRefused(
    workflowId: string,
    error: PlatformError,
    { webhookId, pluginId, event }: DeliveredEvent,
    { tenantId, requestId, traceId }: Starter,
  ): void {
    const { logger } = this.#deps;
    const { code, message } = error;
    logger.diagnostic(
      {
        domain: 'workflow',
        event: 'workflow.start_refused',
        level: isRejectedByKey(error) ? 'info' : 'error',
        reasonCode: code,
        message: `Delivery ${webhookId} of ${pluginId} ${event} did not start the workflow "${workflowId}": ${message}`,
        outcome: 'refused',
        evidence: { webhookId, workflowId },
      },
      { tenantId, requestId, traceId, pluginId },
    );
  }
}

/**
 * Returns the idempotency key of a webhook delivery. The key includes plugin, event and instance, because a delivery id
 * is unique only within these three.
 */
function keyOf({ webhookId, deliveryId, pluginId, event, instanceId }: DeliveredEvent): string {
  if (deliveryId === undefined) return `webhook/${webhookId}`;
  const named = JSON.stringify([pluginId, event, instanceId, deliveryId]);
  return `delivery/${createHash('sha256').update(named).digest('base64url')}`;
}

function scopeOf({ payload, event, pluginId, webhookId, instanceId, receivedAt }: DeliveredEvent): Scope {
  return {
    delivery: { payload: payload as JsonValue, event, pluginId, webhookId, instanceId, receivedAt },
    input: null,
    run: {},
    matrix: {},
    steps: {},
    needs: {},
    jobs: {},
    state: 'success',
  };
}
