import { type CommandResult, type HostKind, LIMITS } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { messageOf, toRemoteError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import { redact } from '../../../kit/redact.ts';
import type { NewDelivery, WebhookInbox } from '../../../store/ports/index.ts';
import { parseOnce } from './webhook-payload.ts';
import type { DeclaredWebhook, WebhookPlugin, WebhookTargets } from './webhook-targets.ts';

/** Runs a handler through the execution backend. */
export type Execute = (call: {
  plugin: WebhookPlugin;
  handler: string;
  host: HostKind;
  hostContext: Record<string, unknown>;
  input: unknown;
  tenantId: string;
  requestId: string;
  traceId: string;
  timeoutMs: number;
}) => Promise<CommandResult>;

/** How a handler's run ends for the sender and for the record. */
export interface Handled {
  succeeded: boolean;
  httpStatus: number;
  body: unknown;
  /** JSON for the delivery's record. */
  record: string;
}

export interface WebhookDispatcherDeps {
  execute: Execute;
  inbox: WebhookInbox;
  targets: WebhookTargets;
  clock: Clock;
  logger: Logger;
  observe: (pluginId: string, event: string, status: string) => void;
  /** How many async deliveries run at a time, over all plugins. */
  concurrency: number;
}

interface Waiting {
  delivery: NewDelivery;
  target: DeclaredWebhook;
  payload: unknown;
}

/** Async deliveries held in memory, by count and by body bytes; more stay in the store alone until there is room. */
const HELD = 1000;
const HELD_BYTES = 32 * 1024 * 1024;
const PAGE = 200;
/** Records keep this much of a handler's result. */
const LARGEST_RECORD = 16 * 1024;

/** Step 7: calls the handler, at once or from the durable inbox. @spec Webhook delivery step 7 */
export function createWebhookDispatcher(deps: WebhookDispatcherDeps) {
  const { execute, inbox, targets, clock, logger, concurrency } = deps;
  const waiting: Waiting[] = [];
  let waitingBytes = 0;
  const running = new Map<string, Promise<void>>();
  /** Waiting, running, or finished while a page that still lists it was being read: never dispatched twice. */
  const known = new Set<string>();
  /** Deliveries lie in the store that are not held here. */
  let backlog = false;
  let refilling: Promise<void> | undefined;
  let closed = false;

  const timeoutMs = ({ plugin, webhook }: DeclaredWebhook): number =>
    webhook.timeoutMs ?? plugin.manifest.permissions.quotas?.timeoutMs ?? LIMITS.routeTimeoutMs;

  async function run(delivery: NewDelivery, target: DeclaredWebhook, payload: unknown): Promise<Handled> {
    const { webhookId, namespaceId, event, source, instanceId, requestId, traceId } = delivery;
    try {
      const result = await execute({
        plugin: target.plugin,
        handler: target.webhook.handler,
        host: 'webhook',
        hostContext: {
          host: 'webhook',
          event,
          namespaceId,
          webhookId,
          source,
          ...(target.webhook.multi ? { instanceId } : {}),
        },
        input: payload,
        tenantId: namespaceId,
        requestId,
        traceId,
        timeoutMs: timeoutMs(target),
      });
      return result.exitCode === 0 ? succeeded(webhookId, result) : failed(result);
    } catch (thrown) {
      const error = toRemoteError(thrown);
      logger.error(`The handler of ${delivery.pluginId} ${event} failed: ${messageOf(thrown)}`, {
        requestId,
        traceId,
        tenantId: namespaceId,
        pluginId: delivery.pluginId,
        meta: { webhookId, code: error.code },
        error: thrown,
      });
      const body = {
        error: { code: error.code, message: error.message, details: { ...error.details, webhookId } },
      };
      return { succeeded: false, httpStatus: error.status, body, record: recordOf(body) };
    }
  }

  function failed({ error, exitCode }: CommandResult): Handled {
    const code = error?.code ?? 'EXECUTION_ERROR';
    const body = {
      error: {
        code,
        message: error?.message ?? `The handler ended with exit code ${exitCode}.`,
        details: error?.details ?? {},
      },
    };
    return { succeeded: false, httpStatus: 500, body, record: recordOf(body) };
  }

  async function runAccepted({ delivery, target, payload }: Waiting): Promise<void> {
    const startedAt = clock.now();
    const { succeeded: ok, record } = await run(delivery, target, payload);
    const status = ok ? 'succeeded' : 'failed';
    deps.observe(delivery.pluginId, delivery.event, status);
    try {
      const steps = JSON.stringify([
        { step: 'dispatch', outcome: status, atMs: startedAt - delivery.receivedAt },
      ]);
      await inbox.finish(delivery.webhookId, {
        status,
        httpStatus: 202,
        steps,
        outcome: record,
        durationMs: clock.now() - delivery.receivedAt,
      });
    } catch (error) {
      // Still `accepted` in the store: the next start runs it again rather than lose it.
      logger.error('The end of an accepted delivery could not be written', {
        error,
        meta: { webhookId: delivery.webhookId },
      });
    }
  }

  const isFull = (): boolean => waiting.length >= HELD || waitingBytes >= HELD_BYTES;

  function pump(): void {
    while (!closed && running.size < concurrency) {
      const next = waiting.shift();
      if (!next) break;
      const { webhookId, body } = next.delivery;
      waitingBytes -= body?.length ?? 0;
      const work = runAccepted(next).finally(() => {
        running.delete(webhookId);
        if (!refilling) known.delete(webhookId);
        pump();
      });
      running.set(webhookId, work);
    }
    if (backlog && !closed && waiting.length < HELD / 2 && !isFull()) refilling ??= refillOnce();
  }

  async function refillOnce(): Promise<void> {
    await refill();
    refilling = undefined;
    forgetFinished();
    pump();
  }

  function forgetFinished(): void {
    const held = new Set(waiting.map(({ delivery }) => delivery.webhookId));
    for (const id of known) if (!held.has(id) && !running.has(id)) known.delete(id);
  }

  /** Takes the oldest stored deliveries that are not held yet, page by page, until memory is full or the store has no more. */
  async function refill(): Promise<void> {
    backlog = false;
    let after: string | undefined;
    try {
      while (!closed && !isFull()) {
        const page = await inbox.unfinished(PAGE, after);
        for (const record of page) hold(record);
        after = page.at(-1)?.webhookId;
        if (page.length < PAGE) break;
      }
      backlog ||= isFull();
    } catch (error) {
      backlog = true;
      logger.error('Accepted deliveries could not be read back; trying again', { error });
      await new Promise<void>((resolve) => setTimeout(resolve, 1000).unref());
    }
  }

  function hold(record: NewDelivery): void {
    if (known.has(record.webhookId)) return;
    const target = targetOf(record);
    if (!target) return;
    push({ delivery: record, target, payload: parseOnce(Buffer.from(record.body ?? []))().value });
  }

  function push(item: Waiting): void {
    known.add(item.delivery.webhookId);
    waiting.push(item);
    waitingBytes += item.delivery.body?.length ?? 0;
  }

  /** A delivery whose plugin is gone stays accepted: it runs once the plugin is back. */
  function targetOf({ pluginId, event, webhookId }: NewDelivery): DeclaredWebhook | undefined {
    const target = targets
      .all()
      .find(({ plugin, webhook }) => plugin.id === pluginId && webhook.event === event);
    if (!target)
      logger.warn(`Delivery ${webhookId} waits: plugin ${pluginId} with webhook ${event} is not loaded`, {
        pluginId,
      });
    return target;
  }

  return {
    timeoutMs,
    run,
    /** Runs an accepted delivery as soon as there is room. It is in the store already. */
    enqueue(delivery: NewDelivery, target: DeclaredWebhook, payload: unknown): void {
      if (isFull() || closed) backlog = true;
      else push({ delivery, target, payload });
      pump();
    },
    /** Dispatches what an earlier process accepted and did not finish. */
    recover(): void {
      backlog = true;
      pump();
    },
    /** Waits for what runs; what waits stays in the store for the next start. */
    async close(): Promise<void> {
      closed = true;
      await refilling;
      await Promise.all(running.values());
    },
  };
}
export type WebhookDispatcher = ReturnType<typeof createWebhookDispatcher>;

function succeeded(webhookId: string, { result }: CommandResult): Handled {
  const value = result ?? null;
  return {
    succeeded: true,
    httpStatus: 200,
    body: { status: 'ok', webhookId, result: value },
    record: recordOf({ result: value }),
  };
}

function recordOf(outcome: unknown): string {
  const text = JSON.stringify(redact(outcome));
  return text.length <= LARGEST_RECORD ? text : JSON.stringify({ truncated: true, bytes: text.length });
}
