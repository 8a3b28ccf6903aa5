import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Webhook } from './nodes.ts';
import type { PostgresServer } from './postgres-server.ts';

const SENDERS = 8;
const PAUSE_MS = 5;
const REQUEST_TIMEOUT_MS = 5000;
const DEADLINE_MS = 60_000;
const BODY = JSON.stringify({ action: 'opened' });

interface Outcome {
  at: number;
  isAccepted: boolean;
}

/** Senders that go on through failures. Ids of acknowledged deliveries are kept. */
export class Senders {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #outcomes: Outcome[] = [];
  readonly #acknowledged: string[] = [];
  readonly #sending: Promise<unknown>;
  #isOver = false;

  constructor(port: number, { path, secret }: Webhook) {
    this.#url = `http://127.0.0.1:${port}${path}`;
    this.#headers = {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`,
    };
    this.#sending = Promise.all(Array.from({ length: SENDERS }, () => this.#send()));
  }

  /** Resolves at the next acceptance. */
  async untilAccepted(): Promise<void> {
    const from = this.#outcomes.length;
    const deadline = performance.now() + DEADLINE_MS;
    while (!this.#outcomes.slice(from).some(({ isAccepted }) => isAccepted)) {
      if (performance.now() > deadline) throw new Error(`No delivery was accepted within ${DEADLINE_MS} ms.`);
      await sleep(PAUSE_MS);
    }
  }

  /** Waits until no request has failed for `steadyMs`. Resolves with the end of the longest time without acceptance. */
  async untilSteady(since: number, steadyMs: number): Promise<{ firstAt: number; lastFailureAt: number }> {
    const lastFailure = (): number => this.#outcomes.findLast(({ isAccepted }) => !isAccepted)?.at ?? since;
    const from = performance.now();
    while (performance.now() - Math.max(from, lastFailure()) < steadyMs) await sleep(PAUSE_MS);
    const accepted = this.#outcomes.filter(({ at, isAccepted }) => isAccepted && at >= since);
    let firstAt = since;
    let longest = 0;
    for (const [n, { at }] of accepted.entries()) {
      const gap = at - (accepted[n - 1]?.at ?? since);
      if (gap > longest) [longest, firstAt] = [gap, at];
    }
    return { firstAt, lastFailureAt: Math.max(firstAt, lastFailure()) };
  }

  /** Ends the load. Resolves with the number of acknowledged deliveries, and of those that the store does not have. */
  async stop(postgres: PostgresServer): Promise<{ acknowledged: number; lost: number }> {
    await this.end();
    const { rows } = await postgres.run(
      'select count(*)::int as stored from svc.delivery where webhook_id = any($1::uuid[])',
      [this.#acknowledged],
    );
    const acknowledged = this.#acknowledged.length;
    return { acknowledged, lost: acknowledged - (rows[0] as { stored: number }).stored };
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#sending;
  }

  async #send(): Promise<void> {
    while (!this.#isOver) {
      const webhookId = await this.#sendOne().catch(() => undefined);
      this.#outcomes.push({ at: performance.now(), isAccepted: webhookId !== undefined });
      if (webhookId !== undefined) this.#acknowledged.push(webhookId);
      await sleep(PAUSE_MS);
    }
  }

  async #sendOne(): Promise<string | undefined> {
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: { ...this.#headers, 'x-github-delivery': randomUUID() },
      body: BODY,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const text = await response.text();
    return response.status === 202 ? (JSON.parse(text) as { webhookId: string }).webhookId : undefined;
  }
}
