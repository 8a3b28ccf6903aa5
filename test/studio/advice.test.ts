import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { WebhookDeliveryDetails } from '../../src/contracts/webhook-deliveries.ts';
import { adviceFor, shortReason } from '../../src/studio/screens/deliveries/advice.ts';
import { compare, differences } from '../../src/studio/screens/deliveries/difference.ts';

const DELIVERY = {
  status: 'refused',
  attempts: 0,
  nextAttemptAt: null,
  reason: null,
  explanation: null,
  steps: [],
  headers: [],
  body: null,
  bodyEncoding: 'utf8',
  outcome: null,
} as unknown as WebhookDeliveryDetails;
const AROUND = { isPaused: false, plugin: 'loaded' } as const;

test('each documented reason of a refusal has one sentence and one action', async () => {
  const page = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
  const section = page.split('### Why was it refused?')[1]!.split('\n## ')[0]!;
  const reasons = [...section.matchAll(/^- `(\w+)`:/gm)].map(([, reason]) => reason!);
  expect(reasons.length).toBeGreaterThan(10);
  const unknown = adviceFor({ ...DELIVERY, explanation: { reason: 'unknown', hint: '' } }, AROUND);
  for (const reason of reasons) {
    const advice = adviceFor({ ...DELIVERY, explanation: { reason, hint: '' } }, AROUND);
    expect([reason, advice?.text]).not.toEqual([reason, unknown!.text]);
    expect(advice?.remedy).toBeDefined();
  }
});

test('a pending delivery says why it has not run yet', () => {
  const accepted = { ...DELIVERY, status: 'accepted' } as const;
  const remedy = (around: Parameters<typeof adviceFor>[1]) => adviceFor(accepted, around)?.remedy;
  expect(remedy({ ...AROUND, isPaused: true })).toBe('resume');
  expect(remedy({ ...AROUND, plugin: 'disabled' })).toBe('enable');
  expect(remedy({ ...AROUND, plugin: 'missing' })).toBe('plugin');
  expect(remedy(AROUND)).toBe('logs');
  expect(shortReason({ ...accepted, status: 'retrying', reason: 'E: no' }, false)).toMatch(
    /^E: no\. The next/,
  );
  expect(shortReason(accepted, true)).toBe('waits: the webhook is paused');
});

test('differences have the JSON path of each value, also for keys of the prototype', () => {
  const left = { a: 1, list: [1, { b: 2 }], 'odd key': true, constructor: 1 };
  const right = { a: 1, list: [1, { b: 3 }, 4], list2: null };
  expect(differences(left, right, '$')).toEqual([
    { path: '$.list[1].b', left: '2', right: '3' },
    { path: '$.list[2]', left: undefined, right: '4' },
    { path: '$["odd key"]', left: 'true', right: undefined },
    { path: '$.constructor', left: '1', right: undefined },
    { path: '$.list2', left: undefined, right: 'null' },
  ]);
  expect(differences([], {}, '$')).toEqual([{ path: '$', left: '[]', right: '{}' }]);
});

test('headers are compared without regard to case, and repeated ones together', () => {
  const left = {
    ...DELIVERY,
    headers: [
      ['X-A', '1'],
      ['x-a', '2'],
      ['X-B', '1'],
    ],
  } as never;
  const right = {
    ...DELIVERY,
    headers: [
      ['x-a', '1, 2'],
      ['x-b', '2'],
    ],
  } as never;
  const parts = compare(left, right);
  expect(parts.flatMap((part) => part.differences)).toEqual([{ path: 'x-b', left: '1', right: '2' }]);
});
