import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import {
  type AuditEntry,
  configureQueue,
  connectSource,
  createAlertChannel,
  createAlertRule,
  createAlertSilence,
  createClientCredentials,
  createEndpoint,
  createSource,
  ENDPOINT_ACCESS,
  grantRole,
  leaseItems,
  listAlerts,
  listAudit,
  listDeliveries,
  mintToken,
  nackItems,
  pauseWebhook,
  provisionWebhook,
  publishMessage,
  putItem,
  resumeWebhook,
  revokeRole,
  type SourceName,
  setClientScopes,
  verifyAudit,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { TEST_KEYS, TEST_OPERATOR, type TestDaemonOptions } from '../../support/daemon.ts';
import { ADMIN_TOKEN, deliver, MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { type EchoUpstream, startUpstream } from './support/echo-upstream.ts';

interface Bench {
  gateway: TestGateway;
  upstream: EchoUpstream;
  /** Runs SQL on the database behind the gateway's back. */
  sql(text: string): Promise<void>;
}

async function onSqlite(options: TestDaemonOptions = {}): Promise<Bench> {
  const bench = await start(options);
  return {
    ...bench,
    async sql(text) {
      // In another process: POSIX locks do not exclude connections of one process through two SQLite libraries.
      const program = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1]);
        db.exec(process.argv[2]); db.close();`;
      const unlocked = `drop trigger if exists audit_entry_update; drop trigger if exists audit_entry_delete; ${text}`;
      execFileSync(process.execPath, ['-e', program, join(bench.gateway.dataDir, 'svc.db'), unlocked]);
    },
  };
}

async function onPostgres(options: TestDaemonOptions = {}): Promise<Bench> {
  const url = await migratedPostgres();
  const bench = await start({ ...options, config: { ...options.config, store: { url } } });
  return {
    ...bench,
    async sql(text) {
      const client = new pg.Client(url);
      await client.connect();
      await client.query(`set search_path to svc; alter table audit_entry disable trigger all; ${text}`);
      await client.end();
    },
  };
}

async function start(options: TestDaemonOptions) {
  const upstream = await startUpstream((request, response) => {
    const status = Number(request.headers['x-answer'] ?? 200);
    if (status === 0) return void request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"id":"toy"}');
  });
  const gateway = await startGateway({
    peers: createPeers({ rest: upstream.url, workflow: upstream.url }),
    operator: { ...TEST_OPERATOR, hostId: 'root' },
    ...options,
    config: { ...options.config, gateway: { admins: ['operator'] } },
  });
  return { gateway, upstream };
}

const entries = async (gateway: TestGateway): Promise<AuditEntry[]> =>
  (await gateway.call(listAudit, { query: { limit: 500 } })).items.reverse();

async function send(
  gateway: TestGateway,
  name: string,
  { params = {}, body, headers = {} }: { params?: Record<string, string>; body?: unknown; headers?: object },
) {
  const [method, path] = name.split(' ');
  const url = path!.replace(/:(\w+)/g, (_, param: string) => encodeURIComponent(params[param] ?? 'x'));
  return gateway.fetch(url, {
    method: method!,
    headers: {
      authorization: `Bearer ${ADMIN_TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const HOOK = { pluginId: '@acme/orders', event: 'created' };
const MULTI = { pluginId: '@acme/orders', event: 'shop', instanceId: 'one' };
const QUERIES: Record<string, string> = {
  'DELETE /api/v1/endpoints/portal': '?application=customer-7',
  'DELETE /api/v1/access/roles': '?subject=host%3Ax',
  'DELETE /api/v1/queues/:name/items': '?status=waiting',
};
const HOST = { name: 'x', publicKey: Buffer.alloc(32, 1).toString('base64') };

/** Creates sources, with a delivery, and queues with a dead item. Returns what their endpoints need to succeed. */
async function inputsOfSources(gateway: TestGateway): Promise<Record<string, object>> {
  const named = (name: string) => ({ name: name as SourceName });
  const auth = { type: 'token' } as const;
  const { url } = await gateway.call(createSource, { body: { ...named('src'), auth } });
  await gateway.call(createSource, { body: { ...named('gone'), auth } });
  await gateway.call(createSource, { body: { ...named('tasks'), provider: 'asana' } });
  await gateway.call(connectSource, { params: named('src'), body: { name: 'kept', queue: 'other' } });
  await gateway.call(connectSource, { params: named('src'), body: { name: 'old', queue: 'other' } });
  const sent = await fetch(url, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  const { webhookId } = (await sent.json()) as { webhookId: string };
  for (const id of ['i-1', 'i-2', 'i-3'])
    await gateway.call(putItem, { params: { name: 'jobs' }, body: { id, body: {} } });
  await gateway.call(configureQueue, { params: { name: 'jobs' }, body: { maxAttempts: 1 } });
  const { items } = await gateway.call(leaseItems, { params: { name: 'jobs' }, body: { max: 1 } });
  const leaseIds = items.map(({ leaseId }) => leaseId);
  await gateway.call(nackItems, { params: { name: 'jobs' }, body: { leaseIds } });
  const params = named('src');
  const jobs = { name: 'jobs' };
  return {
    'POST /api/v1/sources': { body: { ...named('new'), auth } },
    'PATCH /api/v1/sources/:name': { params, body: { description: 'x' } },
    'DELETE /api/v1/sources/:name': { params: named('gone') },
    'POST /api/v1/sources/:name/rotate': { params, body: {} },
    'POST /api/v1/sources/:name/expect-secret': { params: named('tasks'), body: {} },
    'POST /api/v1/sources/:name/pause': { params, body: {} },
    'POST /api/v1/sources/:name/resume': { params, body: {} },
    'POST /api/v1/sources/:name/replay': { params, body: { webhookId } },
    'POST /api/v1/sources/:name/destinations': { params, body: { queue: 'other' } },
    'PATCH /api/v1/sources/:name/destinations/:destination': {
      params: { ...params, destination: 'kept' },
      body: { concurrency: 2 },
    },
    'DELETE /api/v1/sources/:name/destinations/:destination': { params: { ...params, destination: 'old' } },
    'PUT /api/v1/queues/:name/settings': { params: jobs, body: { maxAttempts: 1 } },
    'POST /api/v1/queues/:name/items/:id/retry': { params: { ...jobs, id: items[0]!.id } },
    'POST /api/v1/queues/:name/retry-dead': { params: jobs, body: {} },
    'DELETE /api/v1/queues/:name/items/:id': { params: { ...jobs, id: 'i-3' } },
    'DELETE /api/v1/queues/:name/items': { params: jobs },
  };
}

/** Creates an alert, rules, channels and a silence. Returns what their endpoints need to succeed. */
async function inputsOfAlerts(gateway: TestGateway): Promise<Record<string, object>> {
  const channel = (name: string) => ({ name, type: 'webhook' as const, url: `${gateway.url}/missing` });
  for (const name of ['hook', 'gone']) await gateway.call(createAlertChannel, { body: channel(name) });
  const rule = { kind: 'queue.depth' as const, threshold: { depth: 1 } };
  for (const name of ['full', 'gone']) await gateway.call(createAlertRule, { body: { name, ...rule } });
  const matcher = { rule: 'gone' };
  const until = gateway.clock.now() + 3600_000;
  const silence = await gateway.call(createAlertSilence, { body: { matcher, until } });
  const alerts = async () => {
    gateway.clock.advance(3000);
    return (await gateway.call(listAlerts, { query: { rule: 'full' } })).items;
  };
  await expect.poll(alerts, { timeout: 20_000 }).not.toEqual([]);
  const params = { id: (await alerts())[0]!.id };
  return {
    'POST /api/v1/alerts/:id/acknowledge': { params },
    'POST /api/v1/alerts/:id/resolve': { params },
    'POST /api/v1/alerts/test': { body: { channel: 'hook' } },
    'POST /api/v1/alerts/rules': { body: { name: 'new', ...rule } },
    'PATCH /api/v1/alerts/rules/:name': { params: { name: 'full' }, body: { enabled: false } },
    'DELETE /api/v1/alerts/rules/:name': { params: { name: 'gone' } },
    'POST /api/v1/alerts/channels': { body: channel('new') },
    'PATCH /api/v1/alerts/channels/:name': { params: { name: 'hook' }, body: { description: 'x' } },
    'DELETE /api/v1/alerts/channels/:name': { params: { name: 'gone' } },
    'POST /api/v1/alerts/silences': { body: { matcher, until: '2100-01-01T00:00:00Z' } },
    'DELETE /api/v1/alerts/silences/:id': { params: { id: silence.id } },
  };
}

/** Creates an endpoint with a message. Returns what the calls about messages need to succeed. */
async function inputsOfMessages(gateway: TestGateway): Promise<Record<string, object>> {
  const body = { url: 'http://localhost:9999' };
  const { id } = await gateway.call(createEndpoint, { body });
  const message = await gateway.call(publishMessage, { body: { type: 'x', data: 1 } });
  const params = { id };
  return {
    'POST /api/v1/endpoints': { body },
    'PATCH /api/v1/endpoints/:id': { params, body: { description: 'x' } },
    'DELETE /api/v1/endpoints/:id': { params },
    'POST /api/v1/endpoints/:id/rotate': { params, body: {} },
    'POST /api/v1/endpoints/:id/test': { params, body: {} },
    'POST /api/v1/endpoints/:id/replay': { params, body: {} },
    'POST /api/v1/messages/:id/replay': { params: { id: message.id }, body: {} },
    'POST /api/v1/messages/replay': { body: {} },
  };
}

/** Endpoints that succeed only with a real provider. The tests of connections read the entries of these calls. */
const NEED_A_PROVIDER = new Set(['POST /api/v1/connections/:name/refresh']);

/** Creates a connection. Returns what the calls about connections need to succeed without a provider. */
async function inputsOfConnections(gateway: TestGateway): Promise<Record<string, object>> {
  const named = (name: string) => ({
    name,
    provider: 'github',
    clientId: 'x',
    clientSecret: 'client-secret',
  });
  await send(gateway, 'POST /api/v1/connections', { body: named('made') });
  const params = { name: 'made' };
  return {
    'POST /api/v1/connections': { body: named('new') },
    'PATCH /api/v1/connections/:name': { params, body: { clientSecret: 'new-client-secret' } },
    'POST /api/v1/connections/:name/authorize': { params, body: {} },
    'POST /api/v1/connections/:name/revoke': { params, body: {} },
    'DELETE /api/v1/connections/:name': { params },
  };
}

/** What the endpoints of the gateway need to succeed; the upstream answers 200 to everything else. */
async function inputs(gateway: TestGateway): Promise<Record<string, object>> {
  const client = await gateway.call(createClientCredentials, { body: { name: 'ci' } });
  const { jti } = await gateway.call(mintToken, { body: { hostId: 'ci' } });
  await gateway.call(provisionWebhook, { body: MULTI as never });
  const { secret } = await gateway.call(provisionWebhook, { body: HOOK as never });
  const host = await (await send(gateway, 'POST /hosts/register', { body: HOST })).json();
  const delivered = await deliver(gateway, { event: 'created', secret, payload: { delivery: { id: '1' } } });
  expect(delivered.status).toBe(200);
  const { items } = await gateway.call(listDeliveries);
  const refused = await deliver(gateway, { event: 'created', secret: 'wrong', payload: {} });
  const refusedId = refused.headers.get('x-webhook-id')!;
  const { webhookId } = items[0]!;
  const { clientId } = client;
  const { hostId } = host as { hostId: string };
  return {
    ...(await inputsOfSources(gateway)),
    ...(await inputsOfAlerts(gateway)),
    'PUT /api/v1/secrets/:name': { params: { name: 'TOKEN' }, body: { value: 'a-secret-value' } },
    'DELETE /api/v1/secrets/:name': { params: { name: 'TOKEN' } },
    ...(await inputsOfMessages(gateway)),
    ...(await inputsOfConnections(gateway)),
    'PUT /api/v1/access/roles': { body: { subject: 'host:x', role: 'viewer' } },
    'POST /api/v1/clients': { body: { name: 'x' } },
    'PUT /api/v1/clients/:clientId/scopes': { params: { clientId }, body: { scopes: ['messages:send'] } },
    'DELETE /api/v1/clients/:clientId': { params: { clientId } },
    'POST /api/v1/tokens': { body: { hostId: 'ci' } },
    'DELETE /api/v1/tokens/:jti': { params: { jti } },
    'POST /hosts/register': { body: HOST },
    'POST /api/v1/hosts/invite': { body: { namespaceId: 'default' } },
    'DELETE /api/v1/hosts/:hostId': { params: { hostId } },
    'POST /api/v1/endpoints/portal': { body: { application: 'customer-7' } },
    'POST /api/v1/webhooks/provision': { body: HOOK },
    'POST /api/v1/webhooks/expect-secret': { body: { ...HOOK, event: 'announced' } },
    'POST /api/v1/webhooks/pause': { body: HOOK },
    'POST /api/v1/webhooks/resume': { body: HOOK },
    'POST /api/v1/webhooks/send': { body: { ...HOOK, data: '{}' } },
    'POST /api/v1/webhooks/deliveries/replay': { body: { since: 0 } },
    'POST /api/v1/webhooks/deliveries/:webhookId/replay': { params: { webhookId } },
    'POST /api/v1/webhooks/deliveries/:webhookId/trust': { params: { webhookId: refusedId } },
    'DELETE /api/v1/webhooks/:pluginId/:event': { params: HOOK },
    'DELETE /api/v1/webhooks/:pluginId/:event/:instanceId': { params: MULTI },
  };
}

const DRIVERS: Array<[string, (options?: TestDaemonOptions) => Promise<Bench>]> = [
  ['SQLite', onSqlite],
  ...(POSTGRES_PROGRAMS ? [['PostgreSQL', onPostgres] as (typeof DRIVERS)[0]] : []),
];

describe.each(DRIVERS)('the audit log on %s', (_driver, open) => {
  test('every endpoint with an action writes exactly one entry', async () => {
    const { gateway } = await open();
    const given = await inputs(gateway);
    const audited = Object.entries(ENDPOINT_ACCESS).filter(
      ([name, { audit }]) => audit !== undefined && !NEED_A_PROVIDER.has(name),
    );
    // Objects are deleted last.
    audited.sort(([a], [b]) => Number(a.startsWith('DELETE')) - Number(b.startsWith('DELETE')));
    expect(audited.length).toBeGreaterThan(35);
    for (const [name, { audit }] of audited) {
      const before = (await entries(gateway)).length;
      const query = QUERIES[name] ?? '';
      const response = await send(gateway, name + query, {
        body: name.startsWith('DELETE') ? undefined : {},
        ...given[name],
      });
      const written = (await entries(gateway)).slice(before);
      expect([name, response.status < 300, written.length]).toEqual([name, true, 1]);
      expect(written[0]).toMatchObject({
        action: audit,
        actor: 'operator',
        actorKind: 'static',
        namespaceId: 'default',
        outcome: 'succeeded',
        status: response.status,
        requestId: response.headers.get('x-request-id'),
        anchored: true,
      });
      expect(written[0]!.object).not.toMatch(/^$|[{}]|:$/);
    }
    const verified = await gateway.call(verifyAudit);
    expect(verified).toMatchObject({ intact: true, fault: null, warnings: [] });
    expect(verified.entries).toBe((await entries(gateway)).length);
  });

  test('an entry names object and role, and contains no secret', async () => {
    const { gateway } = await open();
    const { clientSecret, clientId } = await gateway.call(createClientCredentials, { body: { name: 'ci' } });
    const secret = 'a-given-secret-of-more-than-thirty-two-characters';
    await gateway.call(provisionWebhook, { body: { ...HOOK, secret } as never });
    await gateway.call(grantRole, { body: { subject: 'host:member', role: 'admin' } });
    await gateway.call(pauseWebhook, { body: HOOK as never }, MEMBER_TOKEN);
    await send(gateway, 'POST /api/v1/marketplace/plugins', {
      body: { source: 'https://user:hunter2@example.com/toy.tgz' },
      headers: { 'x-answer': '500' },
    });
    const all = await entries(gateway);
    expect(all.map(({ action, object, role, outcome }) => [action, object, role, outcome])).toEqual([
      ['client.create', `client:${clientId}`, null, 'succeeded'],
      ['webhook.provision', 'webhook:@acme/orders/created', null, 'succeeded'],
      ['role.grant', 'role:host:member', null, 'succeeded'],
      ['webhook.pause', 'webhook:@acme/orders/created', 'admin', 'succeeded'],
      ['plugin.install', 'plugin:toy', null, 'failed'],
    ]);
    for (const text of [clientSecret, secret, 'hunter2']) expect(JSON.stringify(all)).not.toContain(text);
  });

  test('refused and invalid calls change nothing and are not recorded; an interrupted one is', async () => {
    const { gateway } = await open();
    await expect(gateway.call(revokeRole, { query: { subject: 'host:x' } })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(gateway.call(createClientCredentials, { body: { name: '' } })).rejects.toThrow();
    await expect(gateway.call(mintToken, { body: { hostId: 'a' } }, MEMBER_TOKEN)).rejects.toThrow();
    await send(gateway, 'POST /api/v1/marketplace/reload', { headers: { 'x-answer': '409' } });
    expect(await entries(gateway)).toEqual([]);
    const cut = await send(gateway, 'POST /api/v1/marketplace/reload', { headers: { 'x-answer': '0' } });
    expect(cut.status).toBe(502);
    expect(await entries(gateway)).toMatchObject([
      { action: 'plugin.reload', outcome: 'unknown', status: 502 },
    ]);
  });

  const tampered: Array<[string, string, object]> = [
    [
      'changes an entry',
      "update audit_entry set actor = 'mallory' where sequence = 3",
      { kind: 'changed', sequence: 3 },
    ],
    ['removes an entry', 'delete from audit_entry where sequence = 3', { kind: 'removed', sequence: 3 }],
    [
      'removes the first entry',
      'delete from audit_entry where sequence = 1',
      { kind: 'removed', sequence: 1 },
    ],
    [
      'swaps two entries',
      'update audit_entry set sequence = 99 where sequence = 3; update audit_entry set sequence = 3 where sequence = 4; update audit_entry set sequence = 4 where sequence = 99',
      { kind: 'unlinked', sequence: 3 },
    ],
    [
      'closes the gap after a removal',
      'delete from audit_entry where sequence = 3; update audit_entry set sequence = 3 where sequence = 4; update audit_entry set sequence = 4 where sequence = 5; update audit_entry set sequence = 5 where sequence = 6',
      { kind: 'unlinked', sequence: 3 },
    ],
    ['cuts off the end', 'delete from audit_entry where sequence > 4', { kind: 'truncated', sequence: 5 }],
    ['empties the log', 'delete from audit_entry', { kind: 'truncated', sequence: 1 }],
    [
      'cuts off the end and sets the head back',
      'delete from audit_entry where sequence > 4; update audit_head set sequence = 4, hash = (select hash from audit_entry where sequence = 4)',
      { kind: 'unsigned', sequence: 4 },
    ],
    [
      'adds an entry',
      'create table one as select * from audit_entry where sequence = 6; update one set sequence = 7; insert into audit_entry select * from one; drop table one',
      { kind: 'unsigned', sequence: 7 },
    ],
    ['deletes the head', 'delete from audit_head', { kind: 'unsigned', sequence: 6 }],
  ];

  test('verification finds where someone changed, removed or moved entries', async () => {
    const { gateway, sql } = await open();
    for (let i = 0; i < 3; i++) {
      await gateway.call(pauseWebhook, { body: HOOK as never });
      await gateway.call(resumeWebhook, { body: HOOK as never });
    }
    await sql(
      'create table kept_entry as select * from audit_entry; create table kept_head as select * from audit_head',
    );
    for (const [what, change, fault] of tampered) {
      await sql(change);
      const { intact, fault: found } = await gateway.call(verifyAudit);
      expect([what, intact, found]).toMatchObject([what, false, fault]);
      await sql(`delete from audit_entry; delete from audit_head;
        insert into audit_entry select * from kept_entry; insert into audit_head select * from kept_head`);
      expect(await gateway.call(verifyAudit)).toMatchObject({ intact: true, entries: 6 });
    }
  });

  test('a former head proves that the log was not set back', async () => {
    const { gateway, sql } = await open();
    await gateway.call(pauseWebhook, { body: HOOK as never });
    const { head: first } = await gateway.call(verifyAudit);
    await sql('create table kept as select * from audit_head');
    await gateway.call(resumeWebhook, { body: HOOK as never });
    const { head } = await gateway.call(verifyAudit);
    const expecting = ({ sequence, hash }: NonNullable<typeof head>) =>
      gateway.call(verifyAudit, { query: { expect: `${sequence}:${hash}` } });
    expect([(await expecting(first!)).intact, (await expecting(head!)).intact]).toEqual([true, true]);
    await sql(
      'delete from audit_entry where sequence = 2; delete from audit_head; insert into audit_head select * from kept',
    );
    expect((await gateway.call(verifyAudit)).intact).toBe(true);
    expect(await expecting(head!)).toMatchObject({
      intact: false,
      fault: { kind: 'truncated', sequence: 2 },
    });
    await gateway.call(pauseWebhook, { body: HOOK as never });
    expect(await expecting(head!)).toMatchObject({
      intact: false,
      fault: { kind: 'unexpected', sequence: 2 },
    });
  });

  test('an entry behind a head without a valid signature leaves a warning for ever', async () => {
    const { gateway, sql } = await open();
    await gateway.call(pauseWebhook, { body: HOOK as never });
    await gateway.call(resumeWebhook, { body: HOOK as never });
    await sql(
      'delete from audit_entry where sequence = 2; update audit_head set sequence = 1, hash = (select hash from audit_entry)',
    );
    await gateway.call(pauseWebhook, { body: HOOK as never });
    expect(await gateway.call(verifyAudit)).toMatchObject({
      intact: true,
      warnings: [expect.stringContaining('entry 2')],
    });
  });

  test('a change that cannot be recorded is not answered as a success', async () => {
    const { gateway, sql } = await open();
    await sql('alter table audit_head rename to hidden_head');
    const failing = [
      await send(gateway, 'POST /api/v1/webhooks/pause', { body: HOOK }),
      await send(gateway, 'POST /api/v1/marketplace/reload', {}),
    ];
    for (const response of failing) {
      expect(response.status).toBe(500);
      expect(await response.json()).toMatchObject({
        error: {
          code: 'INTERNAL_ERROR',
          message: expect.stringContaining('audit log'),
          details: { status: 200 },
        },
      });
    }
    await expect(
      gateway.call(grantRole, { body: { subject: 'host:member', role: 'viewer' } }),
    ).rejects.toThrow();
    await sql('alter table hidden_head rename to audit_head');
    await gateway.call(pauseWebhook, { body: HOOK as never }, MEMBER_TOKEN);
    const failures = gateway.logs.lines.filter(({ reasonCode }) => reasonCode === 'AUDIT_WRITE_FAILED');
    expect(failures.length).toBeGreaterThanOrEqual(2);
  });
});

test('callers see the changes of their own namespace, administrators all', async () => {
  const { gateway } = await onSqlite();
  const { clientId } = await gateway.call(createClientCredentials, { body: { name: 'a' } });
  await gateway.call(setClientScopes, { params: { clientId }, body: { scopes: ['queue:a'] } });
  await gateway.call(pauseWebhook, { body: HOOK as never }, ADMIN_TOKEN, { 'x-svc-namespace': 'other' });
  const actions = async (token: string, query = {}) =>
    (await gateway.call(listAudit, { query }, token)).items.map(({ action }) => action);
  expect(await actions(ADMIN_TOKEN)).toEqual(['webhook.pause', 'client.scopes', 'client.create']);
  expect(await actions(MEMBER_TOKEN)).toEqual(['client.scopes', 'client.create']);
  expect(await actions(ADMIN_TOKEN, { action: 'client.' })).toEqual(['client.scopes', 'client.create']);
  await expect(actions(MEMBER_TOKEN, { namespaceId: 'other' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await expect(gateway.call(verifyAudit, {}, MEMBER_TOKEN)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const first = await gateway.call(listAudit, { query: { limit: 2 } });
  const second = await gateway.call(listAudit, { query: { limit: 2, cursor: first.nextCursor! } });
  expect([first.items.length, second.items.length, second.nextCursor]).toEqual([2, 1, null]);
});

test('another internal secret does not verify the head', async () => {
  const { gateway } = await onSqlite();
  await gateway.call(pauseWebhook, { body: HOOK as never });
  await gateway.close();
  const keys = { ...TEST_KEYS, internalSecret: 'another-internal-test-secret-of-length' };
  const { gateway: again } = await start({ dataDir: gateway.dataDir, keys });
  expect(await again.call(verifyAudit)).toMatchObject({ intact: false, fault: { kind: 'unsigned' } });
  await again.call(resumeWebhook, { body: HOOK as never });
  expect(await again.call(verifyAudit)).toMatchObject({ intact: true, warnings: [expect.any(String)] });
});
