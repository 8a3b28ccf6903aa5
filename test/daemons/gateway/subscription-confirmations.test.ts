import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { newDeliveryContext } from '../../../src/daemons/gateway/domain/webhooks/receive/delivery-context.ts';
import {
  callUrl,
  SubscriptionConfirmations,
} from '../../../src/daemons/gateway/domain/webhooks/receive/subscription-confirmations.ts';
import { createLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { DeliveryEnd } from '../../../src/store/ports/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { MESSAGES } from '../../webhooks/support/aws-sns-messages.ts';

const MESSAGE = MESSAGES['test-subscription-confirmation.json'];

/** Records the ends of confirmations whose calls go to `call`. */
function confirmations(call: () => Promise<void>) {
  const ends: DeliveryEnd[] = [];
  const service = new SubscriptionConfirmations({
    inbox: {
      flush: async () => {},
      finish: async (_id, end) => {
        ends.push(end);
      },
    },
    callUrl: call,
    logger: createLogger({
      serviceId: 'test',
      clock: manualClock(),
      output: { write: () => {}, flush: () => {} },
    }),
  });
  atEnd(() => service.close());
  const context = newDeliveryContext(
    {
      webhookId: 'w',
      pluginId: 'p',
      event: 'e',
      instanceId: undefined,
      requestId: 'r',
      traceId: 't',
    } as never,
    manualClock(),
  );
  return { ends, confirm: (message: unknown) => service.confirm(context, message) };
}

test('a confirmation is repeated after a failure, and its result is recorded', async () => {
  let calls = 0;
  const { ends, confirm } = confirmations(async () => {
    if (++calls === 1) throw new Error('unreachable');
  });
  confirm(MESSAGE);
  await expect.poll(() => ends, { timeout: 10_000 }).toMatchObject([{ status: 'challenge', outcome: null }]);
  expect(calls).toBe(2);
  expect(ends[0]!.steps).toMatch(/^confirmation=ok@/);
});

test('a message with another URL is recorded as a failure, without a call', async () => {
  const { ends, confirm } = confirmations(() => expect.fail('it was called'));
  confirm({ ...MESSAGE, SubscribeURL: 'https://attacker.example/?Action=ConfirmSubscription' });
  await expect
    .poll(() => ends)
    .toMatchObject([{ status: 'challenge', outcome: expect.stringContaining('Amazon') }]);
});

test('redirects and errors are failures, and are not followed', async () => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url!);
    response.writeHead(request.url === '/ok' ? 200 : 302, { location: '/secret' }).end();
  }).listen(0, '127.0.0.1');
  atEnd(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await callUrl(`${base}/ok`, AbortSignal.timeout(5000));
  await expect(callUrl(`${base}/moved`, AbortSignal.timeout(5000))).rejects.toThrow('answered 302');
  expect(paths).toEqual(['/ok', '/moved']);
});
