import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnyJson } from '../support/any-json.ts';
import { ComposeCluster, composeMissing } from '../support/compose-cluster.ts';
import { freePort } from '../support/ports.ts';
import { POSTGRES_PROGRAMS } from '../support/postgres.ts';

const missing = composeMissing(POSTGRES_PROGRAMS);
if (missing) console.warn(`The test of compose.cluster.yaml is skipped: ${missing}`);

const secret = () => randomBytes(32).toString('base64url');

describe.skipIf(missing)('compose.cluster.yaml', () => {
  let cluster: ComposeCluster;
  let url: string;
  const operator = { clientId: 'operator', clientSecret: secret() };

  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    cluster = new ComposeCluster(POSTGRES_PROGRAMS!, {
      ...{ PORT: String(port), GATEWAY_PUBLIC_URL: url },
      ...{ SVC_OPERATOR_CLIENT_ID: operator.clientId, SVC_OPERATOR_CLIENT_SECRET: operator.clientSecret },
      ...{ DB_PASSWORD: secret(), SVC_MASTER_KEY: secret() },
      ...{ GATEWAY_JWT_SECRET: secret(), GATEWAY_INTERNAL_SECRET: secret() },
    });
    await cluster.up();
  }, 300_000);

  afterAll(() => cluster?.dispose(), 120_000);

  async function call(path: string, init: RequestInit = {}): Promise<AnyJson> {
    const response = await fetch(`${url}${path}`, init);
    const body = (await response.json()) as AnyJson;
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(body)}`);
    return body;
  }

  const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

  async function isReady(): Promise<boolean> {
    return fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  async function signIn(): Promise<Record<string, string>> {
    const { accessToken } = await call('/auth/token', post(operator));
    return { authorization: `Bearer ${accessToken}` };
  }

  /** Sends a signed payment. Returns the id of the delivery if it was acknowledged. */
  async function deliver(webhook: AnyJson): Promise<string | undefined> {
    const body = JSON.stringify({ id: randomUUID(), amount: 1 });
    const signature = `sha256=${createHmac('sha256', webhook.secret).update(body).digest('hex')}`;
    const { pathname } = new URL(webhook.url);
    const headers = {
      'content-type': 'application/json',
      'x-signature': signature,
      'x-svc-namespace': 'default',
    };
    try {
      const response = await fetch(`${url}${pathname}`, { method: 'POST', headers, body });
      return response.status === 202 ? ((await response.json()) as AnyJson).webhookId : undefined;
    } catch {
      return undefined;
    }
  }

  async function succeeded(headers: Record<string, string>): Promise<Set<string>> {
    const ids = new Set<string>();
    for (let next: string | null = ''; next !== null; ) {
      const page: AnyJson = await call(
        `/api/v1/webhooks/deliveries?status=succeeded&limit=100${next && `&cursor=${encodeURIComponent(next)}`}`,
        { headers },
      );
      for (const { webhookId } of page.items) ids.add(webhookId);
      next = page.nextCursor;
    }
    return ids;
  }

  async function killUnderLoad(): Promise<void> {
    await expect.poll(isReady, { timeout: 180_000, interval: 500 }).toBe(true);
    const headers = await signIn();
    const webhook = await call(
      '/api/v1/webhooks/provision',
      post({ pluginId: 'ledger', event: 'paid' }, headers),
    );
    const acknowledged: string[] = [];
    let isOver = false;
    const send = async (): Promise<void> => {
      while (!isOver) {
        const id = await deliver(webhook);
        if (id !== undefined) acknowledged.push(id);
        await sleep(20);
      }
    };
    const senders = [send(), send()];
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(50);
    await cluster.kill('node1');
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(before + 50);
    isOver = true;
    await Promise.all(senders);
    const missing = async () => {
      const found = await succeeded(headers);
      return acknowledged.filter((id) => !found.has(id));
    };
    await expect.poll(missing, { timeout: 90_000, interval: 1000 }).toEqual([]);
  }

  test('starts two nodes, and keeps every acknowledged delivery when one is killed under load', async () => {
    try {
      await killUnderLoad();
    } catch (error) {
      console.error(await cluster.logs());
      throw error;
    }
  }, 400_000);
});
