import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { inBraces } from '../../src/daemons/workflow/domain/definition/templates.ts';
import { masterKeyId } from '../../src/kit/security/keys.ts';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import { readKeys } from '../../src/supervisor/keys-file.ts';
import { bodyOf, finish } from '../daemons/gateway/connections/support.ts';
import type { AnyJson } from '../support/any-json.ts';
import { startReceiver } from '../support/message-receiver.ts';
import { startOAuthProvider } from '../support/oauth-provider.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { sendAsGitHub } from '../support/source-senders.ts';
import { type TestPlatform, testPlatform } from './platform.ts';

const SLOW = { timeout: 240_000 };
const SECRET = 'Bearer the-value-before-the-rotation';

async function caller(platform: TestPlatform) {
  const { SVC_GATEWAY_URL: url, SVC_TOKEN: token } = (await platform.svc('status', '--env')).json.result.env;
  const call = async (method: string, path: string, body?: object): Promise<AnyJson> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = (await response.json()) as AnyJson;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  return { url: String(url), call };
}

/** All files and tables that contain a text. */
async function placesOf(text: string, { dataDir }: TestPlatform, database: string | undefined) {
  const places: string[] = [];
  const entries = await readdir(dataDir, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((one) => one.isFile())) {
    const file = join(entry.parentPath, entry.name);
    // Databases are searched by rows: a file keeps the bytes of replaced values in its free pages.
    if (/\.db(?:-wal|-shm)?$/.test(file)) continue;
    if ((await readFile(file, 'latin1')).includes(text)) places.push(file);
  }
  const search = (table: string, rows: object[]) => {
    if (rows.some((row) => JSON.stringify(row).includes(text))) places.push(table);
  };
  for (const entry of entries.filter(({ name }) => name.endsWith('.db'))) {
    const db = new Sqlite(join(entry.parentPath, entry.name), { readonly: true });
    const names = "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'";
    for (const table of db.prepare<[], string>(names).pluck().all())
      search(`${entry.name} ${table}`, db.prepare<[], object>(`select * from "${table}"`).all());
    db.close();
  }
  if (database === undefined) return places;
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  const { rows: tables } = await client.query<{ name: string }>(
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'svc'",
  );
  for (const { name } of tables) search(name, (await client.query(`select * from svc.${name}`)).rows);
  await client.end();
  return places;
}

const workflow = (url: string): object => ({
  id: 'send',
  permissions: { secrets: ['AUTH'] },
  jobs: {
    main: {
      steps: [
        { id: 'call', uses: 'http', with: { url, headers: { authorization: inBraces('secrets.AUTH') } } },
      ],
    },
  },
});

/** Stores a sealed value of each kind, and returns checks that each of them still works. */
async function storeAll(platform: TestPlatform, receiver: Awaited<ReturnType<typeof startReceiver>>) {
  const provider = await startOAuthProvider();
  const { url, call } = await caller(platform);
  await call('PUT', '/api/v1/secrets/AUTH', { value: SECRET });
  expect((await platform.svc('workflows', 'approve-secrets', 'send', '--yes')).code).toBe(0);
  provider.trust(`http://localhost:${new URL(url).port}/oauth/callback`);
  const { authorizeUrl } = await call('POST', '/api/v1/connections', bodyOf(provider));
  expect((await finish(authorizeUrl)).status).toBe(200);
  const endpoint = await call('POST', '/api/v1/endpoints', {
    url: receiver.url,
    headers: { 'x-api-key': 'header-of-the-endpoint' },
  });
  const rotated = await call('POST', `/api/v1/endpoints/${endpoint.id}/rotate`, {});
  const source = await call('POST', '/api/v1/sources', { name: 'gh', provider: 'github' });
  await call('POST', '/api/v1/sources/gh/destinations', {
    name: 'app',
    forward: receiver.url.replace('/hook', '/source'),
  });
  const newSource = await call('POST', '/api/v1/sources/gh/rotate', {});
  const channel = await call('POST', '/api/v1/alerts/channels', {
    name: 'ops',
    type: 'webhook',
    url: receiver.url.replace('/hook', '/alerts'),
  });
  // A delivery whose original headers are kept for its replay.
  expect((await sendAsGitHub(source.url, newSource.secret, { n: 0 }, 'd-0')).status).toBe(202);
  const arrived = (path: string, count: number) =>
    expect
      .poll(() => receiver.received.filter((one) => one.path === path).length, { timeout: 30_000 })
      .toBe(count);
  await arrived('/source', 1);

  return async (round: number): Promise<void> => {
    const { call: now, url: at } = await caller(platform);
    const seen = receiver.received.length;
    const fresh = (path: string) => receiver.received.slice(seen).filter((one) => one.path === path);
    const here = (text: string) => `${at}${new URL(text).pathname}`;
    // The secret, in a step of an approved workflow.
    await now('POST', '/api/v1/workflows/runs', { workflowId: 'send' });
    await expect.poll(() => fresh('/secret')[0]?.headers.authorization, { timeout: 30_000 }).toBe(SECRET);
    // The client secret and the refresh token of the connection.
    const refreshed = await now('POST', '/api/v1/connections/crm/refresh');
    expect(refreshed).toMatchObject({ status: 'active', lastError: null });
    // Both secrets of the endpoint, and its header.
    const { id } = await now('POST', '/api/v1/messages', { type: 'x', data: { round } });
    await expect.poll(() => fresh('/hook').map((one) => one.id), { timeout: 30_000 }).toContain(id);
    const { headers, body } = fresh('/hook').find((one) => one.id === id)!;
    expect(headers['x-api-key']).toBe('header-of-the-endpoint');
    expect(String(headers['webhook-signature']).split(' ')).toHaveLength(2);
    for (const secret of [endpoint.secret, rotated.secret])
      new Webhook(secret).verify(body, headers as Record<string, string>);
    // Both secrets of the source.
    for (const [n, secret] of [source.secret, newSource.secret].entries())
      expect((await sendAsGitHub(here(source.url), secret, { n }, `d-${round}-${n}`)).status).toBe(202);
    expect((await sendAsGitHub(here(source.url), 'wrong', {}, `d-${round}-x`)).status).toBe(401);
    await expect.poll(() => fresh('/source').length, { timeout: 30_000 }).toBe(2);
    // The original headers of a delivery from before the rotation.
    const { items } = await now('GET', '/api/v1/webhooks/deliveries?limit=100');
    const first = items.findLast((one: AnyJson) => one.instanceId === 'app');
    await now('POST', `/api/v1/webhooks/deliveries/${first.webhookId}/replay`, {});
    await expect.poll(() => fresh('/source').length, { timeout: 30_000 }).toBe(3);
    expect(fresh('/source').every((one) => one.headers['x-hub-signature-256'] !== undefined)).toBe(true);
    // The secret of the channel.
    await now('POST', '/api/v1/alerts/test', { channel: 'ops' });
    await expect.poll(() => fresh('/alerts').length, { timeout: 30_000 }).toBe(1);
    const alert = fresh('/alerts')[0]!;
    new Webhook(channel.secret).verify(alert.body, alert.headers as Record<string, string>);
  };
}

const STORES: Array<[string, () => Promise<string | undefined>]> = [
  ['SQLite', async () => undefined],
  ...(POSTGRES_PROGRAMS ? [['PostgreSQL', emptyPostgres] as (typeof STORES)[0]] : []),
];
if (!POSTGRES_PROGRAMS) console.warn(POSTGRES_MISSING);

describe.each(STORES)('on %s', (_name, open) => {
  test('after two rotations everything works, and nothing is encrypted with a former key', SLOW, async () => {
    const database = await open();
    const receiver = await startReceiver();
    const platform = await testPlatform(
      {
        ...(database === undefined ? {} : { store: { url: database } }),
        workflow: { port: 0, httpAllow: ['127.0.0.1'] },
        outgoing: { allow: ['127.0.0.1'] },
      },
      { SVC_MASTER_KEY: undefined },
    );
    await mkdir(join(platform.folder, 'workflows'));
    await writeFile(
      join(platform.folder, 'workflows', 'send.yaml'),
      JSON.stringify(workflow(receiver.url.replace('/hook', '/secret'))),
    );
    if (database !== undefined) expect((await platform.svc('migrate', '--yes')).code).toBe(0);
    expect((await platform.svc('up', '-d')).code).toBe(0);
    const check = await storeAll(platform, receiver);
    await check(0);
    const former: string[] = [];
    for (const round of [1, 2]) {
      await platform.svc('down');
      const id = masterKeyId(readKeys(dataFolder(platform.dataDir))!.masterKey);
      former.push(id);
      // The search finds what it looks for.
      expect(await placesOf(`v1.${id}.`, platform, database)).not.toEqual([]);
      const { json } = await platform.svc('keys', 'rotate', '--yes');
      expect(json.result).toMatchObject({ replacedKeyIds: [id], unreadable: [] });
      for (const one of former) expect(await placesOf(`v1.${one}.`, platform, database)).toEqual([]);
      expect(readKeys(dataFolder(platform.dataDir))).not.toHaveProperty('previousMasterKey');
      expect((await platform.svc('up', '-d')).code).toBe(0);
      await check(round);
    }
    for (const one of former) expect(await placesOf(`v1.${one}.`, platform, database)).toEqual([]);
    expect((await platform.svc('keys', 'status')).json.result).toMatchObject({ old: [], previousKeyIds: [] });
  });
});
