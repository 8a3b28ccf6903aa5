import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { createKillableGateway } from '../../../support/gateway-process.ts';
import { startReceiver, withStatus } from '../../../support/message-receiver.ts';
import { describeOnStores } from '../../../support/stores.ts';

const HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
const KILLS = 3;
const MESSAGES = 120;

describeOnStores(
  'order',
  (config) => {
    test('kills of the gateway keep the order of an ordered endpoint, also behind a message that fails', async () => {
      const gateway = await createKillableGateway({
        ...(await config()),
        outgoing: { allowPrivateAddresses: true },
      });
      let child: ChildProcess = await gateway.start();
      const receiver = await startReceiver();
      const numbers = (): number[] =>
        receiver.received.map(({ body }) => (JSON.parse(body) as { data: number }).data);
      const failures = new Map<number, number>();
      receiver.answer((message, response) => {
        const { data } = JSON.parse(message.body) as { data: number };
        const tries = failures.get(data) ?? 0;
        failures.set(data, tries + 1);
        withStatus(data % 40 === 20 && tries < 1 ? 500 : 200)(message, response);
      });
      const post = async (path: string, body: object): Promise<boolean> => {
        const init = { method: 'POST', headers: HEADERS, body: JSON.stringify(body) };
        const answer = await fetch(gateway.url + path, init).catch(() => undefined);
        return answer?.ok === true;
      };
      const endpoint = { url: receiver.url, ordered: true, retrySchedule: [1, 1, 1, 1, 1] };
      expect(await post('/api/v1/endpoints', endpoint)).toBe(true);

      let accepted = 0;
      /** One message after the other, each repeated until it is accepted. */
      async function publishAll(): Promise<void> {
        for (; accepted < MESSAGES; accepted++)
          while (
            !(await post('/api/v1/messages', {
              type: 'x',
              data: accepted,
              idempotencyKey: `n${accepted}`,
            }))
          )
            await sleep(50);
      }
      const publishing = publishAll();
      for (let kill = 1; kill <= KILLS; kill++) {
        while (accepted < (MESSAGES * kill) / (KILLS + 1)) await sleep(2);
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
        child = await gateway.start();
      }
      await publishing;
      await expect.poll(() => numbers().at(-1), { timeout: 60_000 }).toBe(MESSAGES - 1);
      const received = numbers();
      // Each request repeats the message before it, or is the next one.
      const wrong = received.filter((n, index) => ![0, 1].includes(n - (received[index - 1] ?? -1)));
      expect(wrong).toEqual([]);
      expect(new Set(received).size).toBe(MESSAGES);
    });
  },
  { timeout: 180_000 },
);
