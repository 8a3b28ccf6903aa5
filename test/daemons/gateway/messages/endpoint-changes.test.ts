import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  createEndpoint,
  deleteEndpoint,
  getMessage,
  publishMessage,
  replayMessage,
  updateEndpoint,
} from '../../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../../src/daemons/gateway/services.ts';
import { type ManualClock, systemClock } from '../../../../src/kit/time/clock.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startReceiver } from '../../../support/message-receiver.ts';

/** A gateway with one endpoint whose receiver answers when the test releases it. */
async function world(settings: object = {}) {
  const gateway = await startGateway({
    clock: systemClock as ManualClock,
    config: { outgoing: { allowPrivateAddresses: true } },
  });
  const receiver = await startReceiver();
  const held: Array<() => void> = [];
  receiver.answer((_, response) => void held.push(() => response.end()));
  const { id } = await gateway.call(createEndpoint, { body: { url: receiver.url, ...settings } });
  const publish = async () => (await gateway.call(publishMessage, { body: { type: 'x', data: {} } })).id;
  const update = (body: object) => gateway.call(updateEndpoint, { params: { id }, body });
  const counts = async (message: string) =>
    (await gateway.call(getMessage, { params: { id: message } })).deliveries;
  return { gateway, receiver, held, endpoint: id, publish, update, counts };
}

test('a message in flight is not sent by a second attempt when its endpoint is disabled and enabled', async () => {
  const { gateway, receiver, held, publish, update, counts } = await world();
  const id = await publish();
  await expect.poll(() => receiver.received.length).toBe(1);
  await update({ disabled: true });
  await expect.poll(() => counts(id)).toMatchObject({ dead: 1 });
  await update({ disabled: false });
  await gateway.call(replayMessage, { params: { id }, body: {} });
  // Another message shows that the endpoint has had its turn.
  held[0]!();
  const other = await publish();
  await expect.poll(() => receiver.ids()).toContain(other);
  expect(receiver.ids()).toEqual([id, other]);
  held[1]!();
  await expect.poll(() => counts(id)).toMatchObject({ succeeded: 1, waiting: 0 });
});

test('messages that wait are not sent while their endpoint is disabled, and new ones are after it is enabled', async () => {
  const { receiver, held, publish, update, counts } = await world({ ordered: true });
  const ids = [await publish(), await publish(), await publish()];
  await expect.poll(() => receiver.received.length).toBe(1);
  await update({ disabled: true });
  held[0]!();
  await expect.poll(() => counts(ids[2]!)).toMatchObject({ dead: 1 });
  expect(receiver.ids()).toEqual([ids[0]]);
  await update({ disabled: false });
  const after = await publish();
  await expect.poll(() => receiver.ids()).toEqual([ids[0], after]);
  held[1]!();
  await expect.poll(() => counts(after)).toMatchObject({ succeeded: 1 });
});

test('an endpoint that is deleted while an attempt is in flight gets nothing more', async () => {
  const { gateway, receiver, held, endpoint, publish, counts } = await world({ ordered: true });
  const ids = [await publish(), await publish()];
  await expect.poll(() => receiver.received.length).toBe(1);
  await gateway.call(deleteEndpoint, { params: { id: endpoint } });
  await expect.poll(() => counts(ids[1]!)).toMatchObject({ cancelled: 1 });
  held[0]!();
  await expect.poll(() => (gateway.services as GatewayServices).messageDispatcher.inFlight).toBe(0);
  expect(receiver.ids()).toEqual([ids[0]]);
});

test('the retry of a disabled endpoint does not disturb the order after it is enabled', async () => {
  const { receiver, held, publish, update, counts } = await world({ ordered: true, retrySchedule: [1, 1] });
  receiver.answer((_, response) => void response.writeHead(500).end());
  const failed = await publish();
  await expect.poll(() => counts(failed)).toMatchObject({ retrying: 1 });
  await update({ disabled: true });
  await expect.poll(() => counts(failed)).toMatchObject({ dead: 1 });
  await update({ disabled: false });
  receiver.answer((_, response) => void held.push(() => response.end()));
  const first = await publish();
  await expect.poll(() => held.length).toBe(1);
  // Longer than the delay of the retry with its jitter.
  await sleep(1500);
  const second = await publish();
  await sleep(200);
  expect(receiver.ids()).toEqual([failed, first]);
  held[0]!();
  await expect.poll(() => receiver.ids()).toEqual([failed, first, second]);
});
