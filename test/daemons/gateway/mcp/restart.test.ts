import { once } from 'node:events';
import { expect, test } from 'vitest';
import { putItem } from '../../../../src/contracts/index.ts';
import { createClient } from '../../../../src/http/index.ts';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { createKillableGateway } from '../../../support/gateway-process.ts';
import { callTool, connectTo } from '../../../support/mcp.ts';

test('an agent gets its event again after kill -9 of the gateway', { timeout: 120_000 }, async () => {
  const gateway = await createKillableGateway({});
  const first = await gateway.start();
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const api = createClient({ url: gateway.url, peer: 'gateway', headers: () => headers });
  await api.call(putItem, { params: { name: 'inbox' }, body: { id: 'e-1', body: { order: 1 } } });
  const client = await connectTo(gateway.url);
  const wait = { queue: 'inbox', leaseMs: 1000, waitMs: 0 };
  expect((await callTool(client, 'events_wait', wait)).items).toMatchObject([{ id: 'e-1', attempt: 1 }]);
  first.kill('SIGKILL');
  await once(first, 'exit');
  await gateway.start();
  // The same client goes on, because the endpoint has no sessions.
  const items: unknown[] = [];
  const leased = async (): Promise<number> => {
    items.push(...(await callTool(client, 'events_wait', { ...wait, leaseMs: 60_000 })).items);
    return items.length;
  };
  await expect.poll(leased, { timeout: 30_000, interval: 500 }).toBe(1);
  expect(items).toMatchObject([{ id: 'e-1', attempt: 2, body: { order: 1 } }]);
  const leaseIds = items.map((item) => (item as { leaseId: string }).leaseId);
  await callTool(client, 'events_ack', { queue: 'inbox', leaseIds });
});
