import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ENDPOINT_ACCESS } from '../../src/contracts/index.ts';
import type { AnyJson } from '../support/any-json.ts';
import { createPlatform, type Platform } from '../support/platform.ts';

const PROJECTS = fileURLToPath(new URL('../fixtures/projects', import.meta.url));

/** `root` is an administrator. `ben` has no role, `bea` is an administrator of the namespace "other" alone. */
const CALLERS = { root: 'default', ann: 'default', ben: 'other', bea: 'other' } as const;
type CallerName = keyof typeof CALLERS;
const tokenOf = (name: CallerName): string => `a-static-token-of-${name}`;

/** Path parameters with ids of things that belong to one tenant. */
type Owned =
  | 'alertId'
  | 'endpointId'
  | 'messageId'
  | 'runId'
  | 'webhookId'
  | 'traceId'
  | 'jobId'
  | 'hostId'
  | 'clientId'
  | 'jti'
  | 'scheduleId';

/** Lists, and a text that the list of the owner contains. */
const LISTS: Record<string, (ids: Record<Owned, string>) => string> = {
  'GET /api/v1/access/roles': () => 'host:carl',
  'GET /api/v1/clients': ({ clientId }) => clientId,
  'GET /api/v1/tokens': ({ jti }) => jti,
  'GET /api/v1/hosts': ({ hostId }) => hostId,
  'GET /api/v1/audit': ({ clientId }) => clientId,
  'GET /api/v1/alerts': () => '"kind":"queue.depth"',
  'GET /api/v1/alerts/:id': () => '"kind":"queue.depth"',
  'GET /api/v1/alerts/rules': () => '"name":"owned"',
  'GET /api/v1/alerts/rules/:name': () => '"name":"owned"',
  'GET /api/v1/alerts/channels': () => '"name":"owned"',
  'GET /api/v1/alerts/channels/:name': () => '"name":"owned"',
  'GET /api/v1/alerts/silences': () => '"comment":"only-for-ann"',
  'GET /api/v1/secrets': () => '"name":"OWNED"',
  'GET /api/v1/connections': () => '"name":"owned"',
  'GET /api/v1/connections/:name': () => '"name":"owned"',
  'GET /api/v1/endpoints/portal': () => '"application":"owned"',
  'GET /api/v1/sources': () => '"name":"owned"',
  'GET /api/v1/sources/:name': () => '"name":"owned"',
  'GET /api/v1/endpoints': ({ endpointId }) => endpointId,
  'GET /api/v1/endpoints/:id': ({ endpointId }) => `"id":"${endpointId}"`,
  'GET /api/v1/endpoints/:id/attempts': ({ messageId }) => messageId,
  'GET /api/v1/messages': ({ messageId }) => messageId,
  'GET /api/v1/messages/:id': ({ messageId }) => `"id":"${messageId}"`,
  'GET /api/v1/messages/:id/attempts': ({ endpointId }) => endpointId,
  'GET /api/v1/queues': () => '"name":"owned"',
  'GET /api/v1/queues/:name': () => '"waiting":1',
  'GET /api/v1/queues/:name/items': () => '"owned-item"',
  'GET /api/v1/queues/:name/items/:id': () => 'only-for-ann',
  'GET /api/v1/webhooks': () => '"provisioned":true',
  'GET /api/v1/webhooks/rotation': () => '"rotatedAt":1',
  'GET /api/v1/webhooks/deliveries/counts': () => `"total":${DELIVERIES}`,
  'GET /api/v1/webhooks/deliveries': ({ webhookId }) => webhookId,
  'GET /api/v1/webhooks/deliveries/stream': ({ webhookId }) => webhookId,
  'GET /api/v1/workflows/runs': ({ runId }) => runId,
  'GET /api/v1/workflows/runs/counts': () => '"total":2',
  'GET /api/v1/workflows/schedules': ({ scheduleId }) => scheduleId,
  'GET /api/v1/jobs': ({ jobId }) => jobId,
  'GET /api/v1/logs': ({ webhookId }) => webhookId,
  'GET /api/v1/analytics/events': ({ jobId }) => jobId,
  'GET /api/v1/analytics/stats': () => '"workflow.',
  'GET /api/v1/analytics/daily': () => '"workflow.',
  'GET /api/v1/analytics/stats/daily': () => '"workflow.',
  'GET /api/v1/analytics/permission-uses': () => '"permission":',
};

/** Queries that endpoints require. */
const QUERIES: Record<string, string> = {
  'GET /api/v1/webhooks/rotation': '?pluginId=%40acme%2Forders&event=created',
  'GET /api/v1/analytics/permission-uses': '?pluginId=%40acme%2Forders',
};
/** Number of deliveries of the owner. The other tenant has fewer. */
const DELIVERIES = 5;

/** Endpoints without data of a tenant: what the project contains, and the caller. */
const SHARED = [
  'GET /api/v1/whoami',
  'GET /api/v1/workflows',
  'GET /api/v1/commands',
  'GET /api/v1/commands/:pluginId/:commandId',
  'GET /api/v1/marketplace/plugins',
  'GET /api/v1/marketplace/plugins/:pluginId',
  'GET /api/v1/marketplace/plugins/:pluginId/package',
  'GET /api/v1/routes',
  'GET /api/v1/webhooks/providers',
  'GET /api/v1/webhooks/providers/:id',
  'GET /api/v1/connection-providers',
  'GET /api/v1/event-types',
  // Answers to the links of customers alone.
  'GET /api/v1/portal',
];
const REFUSED = ['GET /api/v1/audit/verify', 'GET /api/v1/node'];

let platform: Platform;
let url: string;
let ids: Record<Owned, string>;

async function send(caller: CallerName, name: string, body?: unknown, headers = {}): Promise<Response> {
  const [method, path] = name.split(' ') as [string, string];
  return fetch(url + path, {
    method,
    signal: AbortSignal.timeout(20_000),
    headers: {
      authorization: `Bearer ${tokenOf(caller)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function done(caller: CallerName, name: string, body?: unknown): Promise<AnyJson> {
  const response = await send(caller, name, body);
  const reply = (await response.json()) as AnyJson;
  if (!response.ok) throw new Error(`${name}: ${JSON.stringify(reply)}`);
  return reply;
}

/** Changes whose body is checked before the id of the path. */
const BODIES: Record<string, unknown> = {
  'POST /api/v1/workflows/runs/:runId/approvals/:stepId': { approved: true },
  'POST /api/v1/workflows/runs/:runId/signals/:name': { payload: null },
  'POST /api/v1/workflows/runs/:runId/steps/:stepId/decision': { action: 'succeed' },
  'PUT /api/v1/clients/:clientId/scopes': { scopes: null },
};

const RULES = Object.entries(ENDPOINT_ACCESS)
  .filter(([, { needs }]) => needs !== 'open' && needs !== 'service')
  .map(([name]) => name);
const isOwned = (name: string): boolean =>
  /:(runId|webhookId|traceId|jobId|hostId|clientId|jti|scheduleId)\b/.test(name);
const filled = (name: string): string =>
  name
    .replace(':stepId', 'main.confirm')
    .replace(':name', 'go')
    .replace(/:(\w+)/g, (_match, key: Owned) => encodeURIComponent(ids[key]));

const WAITS = { id: 'waits', jobs: { main: { steps: [{ id: 'confirm', uses: 'approval' }] } } };
const ENDS = { id: 'ends', jobs: { main: { steps: [{ id: 'note', uses: 'set', with: { a: 1 } }] } } };
const REGISTRATION = { name: 'machine', publicKey: Buffer.alloc(32, 1).toString('base64') };

/** Makes one thing of each kind in the namespace "default". */
async function fill(): Promise<Record<Owned, string>> {
  const webhook = { pluginId: '@acme/orders', event: 'created' };
  await done('ann', 'POST /api/v1/webhooks/provision', webhook);
  const { webhookId } = await done('ann', 'POST /api/v1/webhooks/send', {
    ...webhook,
    data: { id: 1, count: 'sent' },
  });
  for (let id = 2; id <= DELIVERIES; id++)
    await done('ann', 'POST /api/v1/webhooks/send', { ...webhook, data: { id } });
  const { traceId } = await done('ann', `GET /api/v1/webhooks/deliveries/${webhookId}`);
  const { run } = await done('ann', 'POST /api/v1/workflows/runs', { definition: WAITS });
  // Only this tenant has events of workflows.
  await done('ann', 'POST /api/v1/workflows/runs', { definition: ENDS });
  const { job } = await done('ann', 'POST /api/v1/jobs', { handler: 'toy/sweep' });
  const { jti } = await done('root', 'POST /api/v1/tokens', { hostId: 'ci' });
  const { clientId } = await done('root', 'POST /api/v1/clients', { name: 'a client' });
  const { hostId } = await done('root', 'POST /hosts/register', REGISTRATION);
  for (const [subject, namespaceId] of [
    ['host:carl', 'default'],
    ['host:bea', 'other'],
  ])
    await done('root', 'PUT /api/v1/access/roles', { subject, role: 'admin', namespaceId });
  await done('ann', 'PUT /api/v1/secrets/OWNED', { value: 'only-for-ann' });
  await done('ann', 'POST /api/v1/sources', { name: 'owned', provider: 'github' });
  const connection = { provider: 'github', clientId: 'x', clientSecret: 'only-for-ann' };
  await done('ann', 'POST /api/v1/connections', { name: 'owned', ...connection });
  await done('ann', 'POST /api/v1/endpoints/portal', { application: 'owned' });
  await done('ann', 'POST /api/v1/queues/owned/items', { id: 'owned-item', body: { of: 'only-for-ann' } });
  const channel = { name: 'owned', type: 'webhook', url: 'https://receiver.example/' };
  await done('ann', 'POST /api/v1/alerts/channels', channel);
  await done('ann', 'POST /api/v1/alerts/rules', {
    name: 'owned',
    kind: 'queue.depth',
    threshold: { depth: 1 },
  });
  const silence = { matcher: { rule: 'owned' }, until: '2100-01-01T00:00:00Z', comment: 'only-for-ann' };
  await done('ann', 'POST /api/v1/alerts/silences', silence);
  const alerts = async () => (await done('ann', 'GET /api/v1/alerts')).items;
  await vi.waitFor(async () => expect(await alerts()).toHaveLength(1), { timeout: 20_000, interval: 200 });
  const alertId = (await alerts())[0].id;
  const { items } = await done('ann', 'GET /api/v1/workflows/schedules');
  const { id: endpointId } = await done('ann', 'POST /api/v1/endpoints', { url: 'http://localhost:9999' });
  const { messageId } = await done('ann', `POST /api/v1/endpoints/${endpointId}/test`, {});
  return {
    alertId,
    endpointId,
    messageId,
    webhookId,
    traceId,
    runId: run.id,
    jobId: job.id,
    jti,
    clientId,
    hostId,
    scheduleId: items[0].id,
  };
}

beforeAll(async () => {
  const staticTokens = Object.fromEntries(
    Object.entries(CALLERS).map(([name, namespaceId]) => [
      tokenOf(name as CallerName),
      { hostId: name, namespaceId },
    ]),
  );
  platform = await createPlatform({
    plugins: ['./plugins/*'],
    gateway: { port: 0, staticTokens, admins: ['root'] },
  });
  await cp(join(PROJECTS, 'walk/plugins'), join(platform.folder, 'plugins'), { recursive: true });
  await cp(join(PROJECTS, 'walk/workflows'), join(platform.folder, 'workflows'), { recursive: true });
  await cp(join(PROJECTS, 'webhooks/plugins/orders'), join(platform.folder, 'plugins/orders'), {
    recursive: true,
  });
  url = await platform.up();
  ids = await fill();
}, 180_000);
afterAll(() => platform?.dispose());

test('every endpoint that reads is covered here', () => {
  const reads = RULES.filter((name) => name.startsWith('GET ') && !isOwned(name));
  expect([...Object.keys(LISTS), ...SHARED, ...REFUSED].toSorted()).toEqual(reads.toSorted());
});

/** Reads a list. A stream is read until it contains `until`. */
async function textOf(caller: CallerName, name: string, until: string, headers = {}): Promise<string> {
  if (!name.endsWith('/stream')) {
    const path = name
      .replace('alerts/:id', `alerts/${ids.alertId}`)
      .replace('endpoints/:id', `endpoints/${ids.endpointId}`)
      .replace('messages/:id', `messages/${ids.messageId}`)
      .replace(/(sources|queues|rules|channels|connections)\/:name/, '$1/owned')
      .replace(':id', 'owned-item');
    const response = await send(caller, path + (QUERIES[name] ?? ''), undefined, headers);
    return response.status === 403 ? '' : response.text();
  }
  const response = await send(caller, `${name}?cursor=0`, undefined, headers);
  if (response.status === 403) return '';
  let text = '';
  for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    if (text.includes(until)) break;
  }
  return text;
}

test('a list contains what its tenant owns', async () => {
  for (const [name, mark] of Object.entries(LISTS))
    await expect
      .poll(async () => [name, await textOf('root', name, mark(ids))])
      .toEqual([name, expect.stringContaining(mark(ids))]);
});

test.each(['ben', 'bea'] as const)('no list shows %s anything of another tenant', async (caller) => {
  const webhook = { pluginId: '@acme/orders', event: 'later' };
  await done('bea', 'POST /api/v1/webhooks/provision', webhook);
  const mine = await done('bea', 'POST /api/v1/webhooks/send', { ...webhook, data: { id: 2 } });
  for (const [name, mark] of Object.entries(LISTS)) {
    if (mark(ids) === '"provisioned":true') {
      const { items } = await done(caller, name);
      const provisioned = items
        .filter((item: AnyJson) => item.provisioned)
        .map(({ event }: AnyJson) => event);
      expect(provisioned).toEqual(['later']);
      continue;
    }
    for (const headers of [{}, { 'x-svc-namespace': 'default' }, { 'x-tenant-id': 'default' }])
      expect([name, headers, await textOf(caller, name, mine.webhookId, headers)]).toEqual([
        name,
        headers,
        expect.not.stringContaining(mark(ids)),
      ]);
  }
  for (const name of REFUSED) expect([name, (await send(caller, name)).status]).toEqual([name, 403]);
});

test.each(['ben', 'bea'] as const)(
  '%s can neither read nor change a thing of another tenant',
  async (caller) => {
    const names = RULES.filter(isOwned);
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) {
      const body = /^(POST|PUT)/.test(name) ? (BODIES[name] ?? {}) : undefined;
      for (const headers of [{}, { 'x-svc-namespace': 'default' }]) {
        const { status } = await send(caller, filled(name), body, headers);
        expect([name, headers, status]).toEqual([name, headers, expect.toBeOneOf([403, 404])]);
      }
    }
    for (const name of names.filter((each) => each.startsWith('GET ')))
      expect([name, (await send('root', filled(name))).status]).toEqual([name, 200]);
    const { status } = await done('ann', filled('GET /api/v1/workflows/runs/:runId'));
    expect(status).toBe('waiting');
  },
);
