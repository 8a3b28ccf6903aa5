import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import { openDatabase, sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { GATEWAY_MIGRATIONS, INLINE_BODY_BYTES } from '../../../../src/store/sqlite/svc/schema.ts';
import { tempDir } from '../../../support/daemon.ts';

const FIRST = '01890000-0000-7000-8000-000000000001';
const SECOND = '01890000-0000-7000-8000-000000000002';
const LARGE = 'x'.repeat(INLINE_BODY_BYTES + 1);
const digest = (key: string): string => createHash('sha256').update(key).digest('hex');

/** A file of an earlier schema, with these rows. */
async function oldFile(schema: number, rows: string[]): Promise<string> {
  const dataDir = await tempDir();
  const file = join(dataDir, 'svc.db');
  const old = await openDatabase({ file, migrations: GATEWAY_MIGRATIONS.slice(0, schema) });
  for (const row of rows) await old.write(() => old.prepare(row).run());
  await old.close();
  return dataDir;
}

async function openStore(dataDir: string) {
  const store = await sqliteGatewayStore({ dataDir, clock: manualClock(), logger: silentLogger });
  onTestFinished(() => store.close());
  return store.inbox;
}

test('deliveries and markers of the first schema are kept', async () => {
  const columns = `webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id, mode,
    status, http_status, duration_ms, attempts, steps, outcome, headers, body`;
  const dataDir = await oldFile(3, [
    `insert into delivery (${columns}) values ('${FIRST}', 'acme', 'p', 'e', '', 5, '::1', 'r', 't', 'async',
       'accepted', null, null, 0, '[]', null, '[["a","b"]]', cast('{"n":1}' as blob))`,
    `insert into delivery (${columns}) values ('${SECOND}', 'acme', 'p', 'e', '', 6, '::1', 'r', 't', 'sync',
       'succeeded', 200, 1.5, 1, '[]', '{"result":null}', '[]', cast('${LARGE}' as blob))`,
    `insert into delivery_marker values (unhex('${digest('seen')}'), '${FIRST}', 'done', 9000)`,
  ]);
  const inbox = await openStore(dataDir);
  expect(
    (await inbox.unfinished(10)).map(({ webhookId, headers, body }) => [webhookId, headers, String(body)]),
  ).toEqual([[FIRST, '[["a","b"]]', '{"n":1}']]);
  expect(await inbox.find(SECOND)).toMatchObject({
    status: 'succeeded',
    httpStatus: 200,
    bodyBytes: LARGE.length,
  });
  expect(String((await inbox.find(SECOND))!.body)).toBe(LARGE);
  expect(await inbox.seen('seen', 8000)).toBe('done');
  expect(await inbox.seen('other', 8000)).toBeUndefined();
});

test('bodies of the former body table are found after the upgrade, and deleted when space is short', async () => {
  const row = (position: number, id: string) =>
    `insert into delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
       trace_id, mode, origin, status, attempts, steps, body_bytes)
     values (${position}, unhex('${id}', '-'), 'acme', 'p', 'e', '', 5, '::1', 'r', 't', 'sync', 'sender', 'succeeded', 1, '', 3)`;
  const dataDir = await oldFile(4, [
    row(1, FIRST),
    row(2, SECOND),
    `insert into delivery_body values (1, '[["k","v"]]', cast('abc' as blob)), (2, '[]', cast('${LARGE}' as blob))`,
  ]);
  const inbox = await openStore(dataDir);
  const bodies = async () =>
    Promise.all([FIRST, SECOND].map(async (id) => (await inbox.find(id))?.body?.length ?? null));
  expect(await bodies()).toEqual([3, LARGE.length]);
  expect((await inbox.find(FIRST))!.headers).toBe('[["k","v"]]');
  expect(
    (await inbox.list('acme', { limit: 10, search: 'xxx' })).items.map(({ webhookId }) => webhookId),
  ).toEqual([SECOND]);
  expect(await inbox.shrink({ maxBytes: 0, limit: 1 })).toBe(1);
  expect(await bodies()).toEqual([null, LARGE.length]);
  expect(await inbox.shrink({ maxBytes: 0, limit: 10 })).toBe(1);
  expect(await bodies()).toEqual([null, null]);
  expect(await inbox.shrink({ maxBytes: 0, limit: 10 })).toBe(2);
  expect(await inbox.find(FIRST)).toBeUndefined();
});
