import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AnyJson } from './any-json.ts';

/** Plugin of the project `test/fixtures/projects/upgrade`. */
export const UPGRADE_PLUGIN = '@acme/upgrade';

export interface UpgradeLoadOptions {
  url: string;
  token: string;
  /** Secrets of the webhooks by event. */
  secrets: Readonly<Record<'sync' | 'async', string>>;
}

/**
 * Clients of the project `upgrade`: plugin routes, sync and async deliveries, starts of workflow runs. Each request is
 * sent once.
 */
export class UpgradeLoad {
  /** Requests that did not get the expected answer, with what they got. */
  readonly failures: string[] = [];
  readonly counts: Record<string, number> = {};
  /** Ids of acknowledged deliveries. */
  readonly deliveries = new Set<string>();
  /** Ids of started runs by workflow. */
  readonly runs: Record<'short' | 'long', string[]> = { short: [], long: [] };
  readonly #options: UpgradeLoadOptions;
  readonly #clients: Promise<unknown>;
  #isOver = false;
  #next = 0;

  constructor(options: UpgradeLoadOptions) {
    this.#options = options;
    this.#clients = Promise.all([
      ...[20, 50, 200].map((pauseMs) => this.#repeat(pauseMs, () => this.#echo())),
      ...[20, 100].map((pauseMs) => this.#repeat(pauseMs, () => this.#save())),
      ...[20, 150].map((pauseMs) => this.#repeat(pauseMs, () => this.#deliver('sync', 200))),
      ...[20, 150].map((pauseMs) => this.#repeat(pauseMs, () => this.#deliver('async', 202))),
      this.#repeat(50, () => this.#deliver('sync', 200, 2500)),
      // The plugin processes of two nodes run at most 1.6 handlers of this duration per second.
      this.#repeat(1000, () => this.#deliver('async', 202, 2500)),
      this.#repeat(50, () => this.#stream()),
      this.#repeat(250, async () => void (await this.start('short'))),
    ]);
  }

  get total(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }

  async start(workflowId: 'short' | 'long'): Promise<void> {
    const body = await this.#call('run', 202, '/api/v1/workflows/runs', { body: { workflowId } });
    if (body) this.runs[workflowId].push(body.run.id);
  }

  async signal(runId: string): Promise<void> {
    await this.#call('signal', 200, `/api/v1/workflows/runs/${runId}/signals/go`, { body: {} });
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  async #repeat(pauseMs: number, send: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await send();
      await sleep(pauseMs);
    }
  }

  async #echo(): Promise<void> {
    await this.#call('echo', 200, `/api/v1/plugins/upgrade/echo/${this.#next++}`);
  }

  async #save(): Promise<void> {
    await this.#call('save', 200, `/api/v1/plugins/upgrade/saved/${this.#next++}`, { body: {} });
  }

  /** Reads a stream of server-sent events, which lasts 3 s. */
  async #stream(): Promise<void> {
    const { url, token } = this.#options;
    const headers = { authorization: `Bearer ${token}` };
    const sentAt = new Date();
    const outcome = await fetch(`${url}/api/v1/plugins/upgrade/ticks`, { headers }).then(
      async (response) => `${response.status} ${await response.text().catch(String)}`,
      (error: Error) => String(error.cause ?? error),
    );
    this.counts.stream = (this.counts.stream ?? 0) + 1;
    if (!outcome.startsWith('200 ') || !outcome.endsWith('data: 10\n\n'))
      this.failures.push(`${sentAt.toISOString()} stream: ${JSON.stringify(outcome)}`);
  }

  async #deliver(event: 'sync' | 'async', status: number, ms = 20): Promise<void> {
    const id = `${event}-${this.#next++}`;
    const body = { id, ms };
    const signature = createHmac('sha256', this.#options.secrets[event])
      .update(JSON.stringify(body))
      .digest('hex');
    const path = `/webhooks/${encodeURIComponent(UPGRADE_PLUGIN)}/${event}`;
    const headers = { 'x-svc-namespace': 'default', 'x-signature': signature };
    if (await this.#call(event, status, path, { body, headers })) this.deliveries.add(id);
  }

  /** Returns the answer, or undefined for an unexpected one, which is added to `failures`. */
  async #call(
    kind: string,
    expected: number,
    path: string,
    { body, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
  ): Promise<AnyJson | undefined> {
    const { url, token } = this.#options;
    const sentAt = new Date();
    const outcome = await fetch(`${url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${token}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
      .then(async (response) => {
        const by = response.headers.get('x-served-by');
        const text = await response.text();
        if (response.status === expected) return { body: text === '' ? {} : (JSON.parse(text) ?? {}) };
        return { failure: `${response.status} by ${by}: ${text.slice(0, 500)}` };
      })
      .catch((error: Error) => ({ failure: String(error.cause ?? error) }));
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    if ('body' in outcome) return outcome.body;
    this.failures.push(`${sentAt.toISOString()} ${kind} ${path}: ${outcome.failure}`);
    return undefined;
  }
}

export interface Effects {
  /** Number of runs of the handler by delivery id. */
  deliveries: Map<string, number>;
  /** Steps of each run in the order of their effects. */
  steps: Map<string, string[]>;
}

/** Reads what the handlers of the project have written. */
export async function readEffects(project: string): Promise<Effects> {
  const lines = (await readFile(join(project, 'plugins/upgrade/effects.log'), 'utf8')).split('\n');
  const effects: Effects = { deliveries: new Map(), steps: new Map() };
  for (const line of lines) {
    const [kind, id = '', step = ''] = line.split(' ');
    if (kind === 'delivery') effects.deliveries.set(id, (effects.deliveries.get(id) ?? 0) + 1);
    if (kind === 'step') effects.steps.set(id, [...(effects.steps.get(id) ?? []), step]);
  }
  return effects;
}
