import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { days } from '../../src/kit/time/duration.ts';
import { createTestHost } from '../../src/testing/index.ts';

const PLUGINS = join(import.meta.dirname, '../../examples/plugins');
const ISSUE = { repository: 'acme/shop', number: 7, title: 'Checkout is broken' };

async function startTriage() {
  const host = await createTestHost({ plugin: join(PLUGINS, 'triage') });
  onTestFinished(() => host.close());
  return host;
}

test('an issue that nobody answers for three days is reminded of once', async () => {
  const host = await startTriage();
  const reminders = () =>
    host.logs.filter(({ level, message }) => level === 'warn' && !message.startsWith('triage: ')).length;
  const { id } = await host.workflow('triage', ISSUE);
  expect(await host.settled(id)).toMatchObject({ status: 'waiting' });
  host.advance(days(3) - 1);
  expect(await host.settled(id)).toMatchObject({ status: 'waiting' });
  expect(reminders()).toBe(0);
  host.advance(1);
  expect(await host.settled(id)).toMatchObject({ status: 'waiting' });
  expect(reminders()).toBe(1);
});

test('one run per issue is in flight at a time', async () => {
  const host = await startTriage();
  await host.workflow('triage', ISSUE);
  await expect(host.workflow('triage', { ...ISSUE, title: 'Again?' })).rejects.toMatchObject({
    code: 'CONCURRENT_LIMIT_EXCEEDED',
  });
});
