import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { details, eventually, secretOf, send, startSenders } from '../../support/webhook-senders.ts';

test('health reports that the database refuses deliveries, which are still accepted, and that it recovers', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'retried');
  const health = async (path: string) => {
    const reply = await gateway.fetch(path);
    return { status: reply.status, body: await reply.json() };
  };
  const disk = new Sqlite(join(gateway.dataDir, 'svc.db'));
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  expect((await health('/health')).body).not.toHaveProperty('degraded');
  expect((await send(gateway, 'retried', secret, { n: 1 })).status).toBe(202);
  for (const path of ['/health', '/api/v1/health'])
    await eventually(async () =>
      expect(await health(path)).toMatchObject({
        status: 200,
        body: { status: 'degraded', service: 'gateway', degraded: [{ reasonCode: 'INBOX_NOT_FILED' }] },
      }),
    );
  // Anybody may ask.
  expect(JSON.stringify(await health('/health'))).not.toContain(gateway.dataDir);
  const sent = await send(gateway, 'retried', secret, { n: 2 });
  expect(sent.status).toBe(202);
  const reasons = () => gateway.logs.lines.map(({ reasonCode }) => reasonCode);
  expect(reasons().filter((code) => code === 'INBOX_NOT_FILED')).toHaveLength(1);

  disk.exec('drop trigger no_room');
  disk.close();
  await eventually(async () => expect((await health('/health')).body).toMatchObject({ status: 'ok' }));
  expect((await health('/health')).body).not.toHaveProperty('degraded');
  expect(reasons()).toContain('INBOX_FILED_AGAIN');
  expect((await details(gateway, sent.headers.get('x-webhook-id')!)).mode).toBe('async');
});
