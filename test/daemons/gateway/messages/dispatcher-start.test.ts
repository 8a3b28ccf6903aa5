import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MessageDispatcher } from '../../../../src/daemons/gateway/domain/messages/dispatch/message-dispatcher.ts';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import type { DueDelivery, EndpointWork, MessageContent } from '../../../../src/store/ports/index.ts';

const RETRY_MS = 60_000;

const contentOf = (id: string) =>
  ({ id, application: null, body: Buffer.from('{}') }) as unknown as MessageContent;

const deliveryOf = (messageId: string, nextAttemptAt: number | null): DueDelivery => ({
  ...{ messageId, endpointId: 'ep', tries: 0, attempts: 0, isReplay: false, nextAttemptAt },
});

/** A dispatcher of an ordered endpoint. The store has a message that waits for its retry, and reads its work slowly. */
function startSlowly(isShared: boolean) {
  const clock = manualClock();
  const retryAt = clock.now() + RETRY_MS;
  const { promise: work, resolve } = Promise.withResolvers<EndpointWork[]>();
  const sent: string[] = [];
  const stored = ['msg_2'];
  const ended = new Set<string>();
  const record = {
    ...{ id: 'ep', ordered: true, rateLimitPerSecond: null, disabledReason: null, failingSince: null },
    ...{ application: null, retrySchedule: null },
  };
  const dispatcher = new MessageDispatcher({
    store: {
      work: () => work,
      waiting: async () => stored.filter((id) => !ended.has(id)).map((id) => deliveryOf(id, null)),
      retries: async () => (ended.has('msg_1') ? [] : [deliveryOf('msg_1', retryAt)]),
      nextRetryAt: async () => null,
      contents: async (ids: string[]) => ids.map(contentOf),
      endAttempts: async (ends: Array<{ messageId: string }>) => {
        for (const { messageId } of ends) ended.add(messageId);
      },
    } as never,
    registry: { find: () => ({ record }), onChange: () => {} } as never,
    sender: {
      async send(_: unknown, { id }: MessageContent) {
        sent.push(id);
        return { succeeded: true, responseStatus: 200, durationMs: 1, startedAt: clock.now() };
      },
    } as never,
    endpointEnds: { end: () => {} } as never,
    ...{ clock, random: { fraction: () => 0 }, logger: silentLogger, isShared },
    isPublishing: () => false,
    mayStart: () => true,
    observe: () => {},
  });
  const known = [
    { endpointId: 'ep', oldestWaiting: 'msg_2', nextRetryAt: retryAt },
  ] as never as EndpointWork[];
  return { clock, dispatcher, sent, finishScan: () => resolve(known) };
}

test.each([false, true])(
  'a message that is accepted during the first scan stays behind a stored retry (shared store: %s)',
  async (isShared) => {
    const { clock, dispatcher, sent, finishScan } = startSlowly(isShared);
    const scanned = dispatcher.scan();
    dispatcher.accept(contentOf('msg_2'), ['ep']);
    await sleep(20);
    expect(sent).toEqual([]);
    finishScan();
    await scanned;
    await sleep(20);
    expect(sent).toEqual([]);
    clock.advance(RETRY_MS);
    await expect.poll(() => sent).toEqual(['msg_1', 'msg_2']);
    await dispatcher.close();
  },
);
