import { expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { createKillableGateway } from '../../../support/gateway-process.ts';
import { startReceiver } from '../../../support/message-receiver.ts';
import { migratedPostgres } from '../../../support/migrated-postgres.ts';
import { POSTGRES_PROGRAMS } from '../../../support/postgres.ts';

const HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };

test.skipIf(!POSTGRES_PROGRAMS)(
  'of several gateways one sends, in order; after its death another one does, and no message is lost',
  { timeout: 120_000 },
  async () => {
    const config = { store: { url: await migratedPostgres() }, outgoing: { allowPrivateAddresses: true } };
    const [first, second] = [await createKillableGateway(config), await createKillableGateway(config)];
    const leader = await first.start();
    await second.start();
    const receiver = await startReceiver();
    const post = async (url: string, path: string, body: object): Promise<{ id: string }> => {
      const answer = await fetch(url + path, {
        method: 'POST',
        headers: HEADERS,
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(await answer.text());
      return (await answer.json()) as { id: string };
    };
    await post(first.url, '/api/v1/endpoints', { url: receiver.url, retrySchedule: [1, 1, 1] });
    const ordered = await startReceiver();
    const ofOrder = { url: ordered.url, ordered: true, retrySchedule: [1, 1, 1] };
    await post(first.url, '/api/v1/endpoints', ofOrder);
    const sent: string[] = [];
    const publish = async (url: string) => {
      sent.push((await post(url, '/api/v1/messages', { type: 'x', data: sent.length })).id);
    };
    for (let n = 0; n < 20; n++) await publish(n % 2 ? first.url : second.url);
    await expect.poll(() => receiver.ids().length, { timeout: 30_000 }).toBe(20);
    expect(receiver.ids().toSorted()).toEqual(sent.toSorted());

    leader.kill('SIGKILL');
    for (let n = 0; n < 20; n++) await publish(second.url);
    await expect.poll(() => new Set(receiver.ids()).size, { timeout: 60_000 }).toBe(40);
    expect([...new Set(receiver.ids())].toSorted()).toEqual(sent.toSorted());
    // The order holds across the nodes that accepted the messages, and across the kill, which may repeat messages.
    await expect.poll(() => new Set(ordered.ids()).size, { timeout: 60_000 }).toBe(40);
    expect([...new Set(ordered.ids())]).toEqual(sent);
  },
);
