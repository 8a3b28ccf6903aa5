import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { SENDERS } from '../support/webhook-senders.ts';
import { testPlatform, withStandIns } from './platform.ts';

test('svc status reports that deliveries are accepted but not filed, and svc down does not wait for filing', async () => {
  const { folder, env, svc, dataDir, service } = await testPlatform(
    ...withStandIns({ config: { plugins: [join(SENDERS, 'plugins/*')] }, real: ['marketplace', 'gateway'] }),
  );
  expect((await svc('up', '-d')).code).toBe(0);
  expect((await svc('status')).json.result.degraded).toEqual([]);
  const { secret } = (await svc('webhooks', 'provision', 'senders', 'queued', '--yes')).json.result;
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  disk.close();
  const { url } = await service('gateway');
  const sent = await fetch(`${url}/webhooks/senders/queued`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-namespace': 'default', 'x-token': secret },
    body: '{"n":1}',
  });
  expect(sent.status).toBe(202);
  await expect
    .poll(async () => (await svc('status')).json.result.degraded, { timeout: 20_000 })
    .toEqual([{ service: 'gateway', reasonCode: 'INBOX_NOT_FILED', message: expect.any(String) }]);
  expect((await service('gateway')).state).toBe('ready');
  expect((await runCli(['status'], { cwd: folder, env })).stdout).toContain(
    'gateway is degraded (INBOX_NOT_FILED)',
  );
  expect((await svc('down')).json.ok).toBe(true);
}, 60_000);
