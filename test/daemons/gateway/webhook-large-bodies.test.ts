import { expect, test } from 'vitest';
import { deliver, provision, startGateway } from '../../support/gateway.ts';

/** The most that a webhook takes unless it declares otherwise. */
const MAX_BODY_BYTES = 1024 * 1024;

/** JSON of exactly so many bytes. */
function padded(payload: Record<string, unknown>): string {
  const bytes = Buffer.byteLength(JSON.stringify({ ...payload, pad: '' }));
  return JSON.stringify({ ...payload, pad: 'x'.repeat(MAX_BODY_BYTES - bytes) });
}

test.each([
  {
    what: '60,000 keys',
    body: padded(Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n]))),
  },
  { what: 'half a million values', body: padded({ list: Array.from({ length: 500_000 }, () => 0) }) },
  {
    what: 'as many short objects of different keys as fit',
    body: padded({ list: Array.from({ length: 90_000 }, (_, n) => ({ [n.toString(36)]: 0 })) }),
  },
])('a body of 1 MB with $what reaches its sync handler, and its echo is returned', async ({ body }) => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  expect(Buffer.byteLength(body)).toBe(MAX_BODY_BYTES);
  const reply = await deliver(gateway, { event: 'plain', secret, body });
  expect([reply.status, reply.body.error]).toEqual([200, undefined]);
  // As text: comparing half a million values one by one takes seconds.
  expect(JSON.stringify(reply.body.result.saw) === body).toBe(true);
});

test('after a large body a small one is subject to the ordinary limits again', async () => {
  const gateway = await startGateway({ config: { execution: { worker: { maxProcesses: 1 } } } });
  const secret = await provision(gateway, 'plain');
  const keys = Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n]));
  expect((await deliver(gateway, { event: 'plain', secret, body: padded(keys) })).status).toBe(200);
  const refused = await deliver(gateway, { event: 'plain', secret, payload: { makeKeys: 60_000 } });
  expect([refused.status, refused.body.error.code]).toEqual([500, 'EXECUTION_ERROR']);
  expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(200);
});
