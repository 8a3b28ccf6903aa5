import { expect, test } from 'vitest';
import { getDelivery, listDeliveries, provisionWebhook } from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { ADMIN_TOKEN, type TestGateway } from '../../support/gateway.ts';
import { createKillableGateway, type KillableGateway } from '../../support/gateway-process.ts';
import { describeOnStores } from '../../support/stores.ts';
import { INBOUND_PROJECT, send } from './support/inbound.ts';

const POLL = { timeout: 60_000, interval: 50 };

function callsOf(killable: KillableGateway): TestGateway['call'] {
  const client = createClient({ url: killable.url, peer: 'gateway' });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  return (endpoint, input) => client.call(endpoint, input, { headers });
}

async function provisioned(call: TestGateway['call'], event: string): Promise<string> {
  const body = { pluginId: 'inbound', event, namespaceInUrl: true };
  return (await call(provisionWebhook, { body } as never)).secret;
}

async function latest(call: TestGateway['call']) {
  const { items } = await call(listDeliveries, { query: { limit: 1 } } as never);
  return call(getDelivery, { params: { webhookId: items[0]!.webhookId } } as never);
}

describeOnStores(
  'a gateway that is killed',
  (config) => {
    const projectOf = async () => ({ plugins: [`${INBOUND_PROJECT}/plugins/*`], ...(await config()) });

    test('a delivery answered before the end of its handler runs again, and its id stays a duplicate', async () => {
      const killable = await createKillableGateway(await projectOf());
      const call = callsOf(killable);
      const child = await killable.start();
      const secret = await provisioned(call, 'acked');
      const body = '{"id":"1","sleepMs":3000,"n":5}';
      expect((await send(killable, 'acked', { secret, body })).status).toBe(200);
      expect(await latest(call)).toMatchObject({ status: 'running', mode: 'async' });
      child.kill('SIGKILL');

      await killable.start();
      const { webhookId } = await latest(call);
      const status = async () => (await call(getDelivery, { params: { webhookId } } as never)).status;
      await expect.poll(status, POLL).toBe('succeeded');
      const delivery = await call(getDelivery, { params: { webhookId } } as never);
      expect(delivery).toMatchObject({ mode: 'async', outcome: { result: { n: 5 } } });
      const before = await call(listDeliveries, { query: { status: 'duplicate' } } as never);
      expect((await send(killable, 'acked', { secret, body })).status).toBe(200);
      const after = () => call(listDeliveries, { query: { status: 'duplicate' } } as never);
      await expect.poll(async () => (await after()).items.length, POLL).toBe(before.items.length + 1);
    });
  },
  { timeout: 120_000 },
);
