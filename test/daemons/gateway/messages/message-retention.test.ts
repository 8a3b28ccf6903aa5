import { expect, test } from 'vitest';
import {
  createEndpoint,
  getMessage,
  listEndpointAttempts,
  listMessages,
  publishMessage,
} from '../../../../src/contracts/index.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import { days, minutes, seconds } from '../../../../src/kit/time/duration.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startReceiver, withStatus } from '../../../support/message-receiver.ts';
import { describeOnStores } from '../../../support/stores.ts';

describeOnStores(
  'retention',
  (config) => {
    test('a running gateway deletes finished messages after their retention, and no unfinished ones', async () => {
      const clock = manualClock(Date.now());
      const gateway = await startGateway({
        clock,
        // A gateway that shares its store loses its lease when the clock is moved by days.
        sharesStore: false,
        config: {
          ...(await config()),
          outgoing: { allowPrivateAddresses: true },
          retention: { messagesDays: 2 },
        },
      });
      const [healthy, failing] = [await startReceiver(), await startReceiver()];
      failing.answer(withStatus(500));
      const create = (url: string, type: string, retrySchedule: number[]) =>
        gateway.call(createEndpoint, { body: { url, types: [type], retrySchedule } });
      const { id: endpointId } = await create(healthy.url, 'done', []);
      await create(failing.url, 'open', [86_400, 86_400, 86_400]);
      await create(failing.url, 'dead', []);
      const publish = async (type: string, key?: string) =>
        (
          await gateway.call(publishMessage, {
            body: { type, data: {}, ...(key === undefined ? {} : { idempotencyKey: key }) },
          })
        ).id;
      const old = [await publish('done', 'key'), await publish('dead'), await publish('open')];
      const none = await publish('of-no-endpoint');
      const counts = async (id: string) => (await gateway.call(getMessage, { params: { id } })).deliveries;
      await expect.poll(() => counts(old[0]!)).toMatchObject({ succeeded: 1 });
      await expect.poll(() => counts(old[1]!)).toMatchObject({ dead: 1 });
      await expect.poll(() => counts(old[2]!)).toMatchObject({ retrying: 1 });

      clock.advance(days(1));
      const recent = await publish('done');
      await expect.poll(() => counts(recent)).toMatchObject({ succeeded: 1 });
      const listed = async () =>
        (await gateway.call(listMessages, { query: {} })).items.map(({ id }) => id).toReversed();
      // Within the retention, sweeps delete nothing.
      clock.advance(days(1) - seconds(2));
      expect(await listed()).toEqual([...old, none, recent]);
      clock.advance(minutes(1));
      await expect
        .poll(async () => {
          clock.advance(minutes(1));
          return listed();
        })
        .toEqual([old[2], recent]);
      await expect(counts(old[0]!)).rejects.toMatchObject({ code: 'NOT_FOUND' });
      const attempts = await gateway.call(listEndpointAttempts, {
        params: { id: endpointId },
        query: {},
      });
      expect(attempts.items.map(({ messageId }) => messageId)).toEqual([recent]);
      // The key of a deleted message is kept for its 7 days, so that the message is not sent again.
      expect(await publish('done', 'key')).toBe(old[0]);
      expect(healthy.received).toHaveLength(2);
      clock.advance(days(5));
      expect(await publish('done', 'key')).not.toBe(old[0]);
    });
  },
  { timeout: 60_000 },
);
