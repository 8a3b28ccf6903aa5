import { expect, test } from 'vitest';
import { list } from '../../../src/cli/commands/alerts/list.ts';
import { silences } from '../../../src/cli/commands/alerts/silences.ts';
import { createStyle } from '../../../src/cli/style.ts';
import {
  createAlertRule,
  createAlertSilence,
  createEndpoint,
  listAlertSilences,
  listAlerts,
  publishMessage,
  replayMessage,
  updateAlertRule,
} from '../../../src/contracts/index.ts';
import { hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { ALL, type AlertPlatform, startAlertPlatform } from '../../support/alert-platform.ts';
import { sharedByTests } from '../../support/at-end.ts';
import { runCli } from '../../support/cli.ts';
import { tempDir } from '../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';

const shared = sharedByTests(() => startAlertPlatform({}));

/** Fails messages of an endpoint of its own. */
async function failing({ gateway, receiver, answers }: AlertPlatform, application: string) {
  answers.set(`/${application}`, 500);
  const body = { url: `${receiver.url}/${application}`, application, types: ['*'], retrySchedule: [] };
  const { id } = await gateway.call(createEndpoint, { body });
  const fail = () => gateway.call(publishMessage, { body: { type: 'x', data: 1, application } });
  return { id, fail };
}

const match = (application: string) => ({ application });

test('alerts of one wait share a message, and those of other groups do not', async () => {
  const platform = shared();
  const { gateway } = platform;
  const [one, two] = [await failing(platform, 'one'), await failing(platform, 'two')];
  const rule = { match: match('*'), groupBy: ['application'], groupWaitMs: minutes(1) };
  const { messages, name } = await platform.observe('delivery.failed', rule);
  await one.fail();
  await two.fail();
  await platform.until(
    async () => (await gateway.call(listAlerts, { query: { rule: name } })).items.length,
    2,
  );
  gateway.clock.advance(seconds(30));
  await one.fail();
  await platform.until(
    async () => (await gateway.call(listAlerts, { query: { rule: name } })).items.length,
    3,
  );
  expect(messages()).toEqual([]);
  gateway.clock.advance(seconds(40));
  await platform.until(() => messages().length, 2);
  const totals = () => messages().map(({ data }) => data.total);
  expect(totals().toSorted()).toEqual([1, 2]);
  const incidents = new Set(messages().map(({ data }) => data.incident));
  expect(incidents.size).toBe(2);
  // A further failure is sent a wait after the last message, and lists the earlier ones again.
  await two.fail();
  await platform.until(() => messages().length, 2);
  gateway.clock.advance(minutes(1));
  await platform.until(totals, [...totals(), 2]);
  expect(incidents.has(messages()[2].data.incident)).toBe(true);
});

test('an object that fails again while its alert is open is counted, and not sent again', async () => {
  const platform = shared();
  const { gateway } = platform;
  const { fail } = await failing(platform, 'again');
  const { messages, name } = await platform.observe('delivery.failed', { match: match('again') });
  const { id } = await fail();
  await platform.until(() => messages().length, 1);
  const counts = async () =>
    (await gateway.call(listAlerts, { query: { rule: name } })).items.map(({ count }) => count);
  for (let replays = 1; replays <= 2; replays++) {
    await gateway.call(replayMessage, { params: { id }, body: {} });
    await platform.until(counts, [1 + replays]);
  }
  // Another message is another object.
  await fail();
  await platform.until(() => messages().length, 2);
  expect(await counts()).toEqual([1, 3]);
  expect(messages()[1].data.alerts.map(({ count }: { count: number }) => count)).toEqual([1, 3]);
});

test('a silence matches by kind, rule or object of its own namespace, and ends', async () => {
  const platform = shared();
  const { gateway } = platform;
  const { id, fail } = await failing(platform, 'quiet');
  const silenced = await platform.observe('delivery.failed', { match: match('quiet') });
  const heard = await platform.observe('delivery.failed', { match: match('quiet') });
  const now = gateway.clock.now();
  const add = (matcher: object, more: object = ALL, untilMs = hours(1)) =>
    gateway.call(createAlertSilence, { ...more, body: { matcher, until: now + untilMs } as never });
  const first = await add({ rule: silenced.name, object: `*/${id}` });
  // None of these matches both fields, or belongs to the namespace of the rule.
  await add({ rule: silenced.name, kind: 'run.failed' });
  await add({ rule: heard.name, object: 'msg_*/ep_other' });
  await add({ kind: 'delivery.failed' }, {});
  await fail();
  await platform.until(heard.types, ['alert.firing']);
  const stateOf = async ({ name }: { name: string }) =>
    (await gateway.call(listAlerts, { query: { rule: name } })).items.map(({ state, silenceId }) => [
      state,
      silenceId,
    ]);
  expect(await stateOf(silenced)).toEqual([['silenced', first.id]]);
  expect(await stateOf(heard)).toEqual([['firing', null]]);
  expect(silenced.types()).toEqual([]);
  // A later silence also covers an alert that fires.
  const later = await add({ rule: heard.name }, ALL, hours(2));
  await platform.until(() => stateOf(heard), [['silenced', later.id]]);
  gateway.clock.advance(hours(1));
  await platform.until(silenced.types, ['alert.firing']);
  expect(await stateOf(silenced)).toEqual([['firing', null]]);
  expect(await stateOf(heard)).toEqual([['silenced', later.id]]);
  const { items } = await gateway.call(listAlertSilences, { query: {} });
  expect(items.filter(({ active }) => active).map((silence) => silence.id)).toEqual([later.id]);
  const refuse = (matcher: object, untilMs: number) =>
    expect(add(matcher, ALL, untilMs)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  await refuse({}, hours(9));
  await refuse({ rule: 'x' }, 0);
});

test('a rule with fields or thresholds of another kind is refused, and a disabled one raises nothing', async () => {
  const platform = shared();
  const { gateway } = platform;
  const create = (rule: object) =>
    gateway.call(createAlertRule, { ...ALL, body: { name: 'bad', channels: [], ...rule } as never });
  for (const rule of [
    { kind: 'run.failed', match: { queue: 'x' } },
    { kind: 'run.failed', threshold: { depth: 1 } },
    { kind: 'certificate.expiring' },
    { kind: 'unknown' },
    { kind: 'run.failed', groupBy: ['colour'] },
  ])
    await expect(create(rule)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  await expect(create({ kind: 'run.failed', channels: ['missing'] })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  const { fail } = await failing(platform, 'off');
  const off = await platform.observe('delivery.failed', { match: match('off'), enabled: false });
  const on = await platform.observe('delivery.failed', { match: match('off') });
  await fail();
  await platform.until(on.types, ['alert.firing']);
  expect((await gateway.call(listAlerts, { query: { rule: off.name } })).items).toEqual([]);
  await gateway.call(updateAlertRule, { ...ALL, params: { name: on.name }, body: { enabled: false } });
  await platform.until(
    async () => (await gateway.call(listAlerts, { query: { rule: on.name } })).items[0]!.state,
    'resolved',
  );
  expect(on.types()).toEqual(['alert.firing']);
});

test('svc alerts list, test and silence print JSON, and fit 80 columns', async () => {
  const platform = shared();
  const { gateway, answers } = platform;
  const { fail } = await failing(platform, 'shown');
  const { name } = await platform.observe('delivery.failed', { match: match('shown') });
  await fail();
  await platform.until(
    async () => (await gateway.call(listAlerts, { query: { rule: name } })).items.length,
    1,
  );
  // The command counts from the time of the machine, which is years before that of the gateway.
  const cwd = await tempDir();
  const svc = (...words: string[]) =>
    runCli(['alerts', ...words, '--url', gateway.url, '--token', ADMIN_TOKEN], { cwd });
  const json = async (...words: string[]) => (await svc(...words, '--json')).json;

  const listed = await json('list', '--rule', name, '--state', 'firing');
  expect(listed).toMatchObject({ ok: true, result: { items: [{ rule: name, kind: 'delivery.failed' }] } });
  const text = await svc('list', '--rule', name);
  expect(text).toMatchObject({ code: 0, stderr: '' });
  for (const shown of ['firing', 'did not take a message', listed.result.items[0].id])
    expect(text.stdout).toContain(shown);

  expect(await json('test', '--rule', name, '--all')).toMatchObject({
    result: { results: [{ channel: name, type: 'webhook', ok: true, status: 200, error: null }] },
  });
  answers.set(`/alerts/${name}`, 503);
  const failed = await svc('test', '--channel', name, '--all');
  expect(failed.stdout).toContain('The receiver answered 503');

  const silenced = await json(
    'silence',
    '--rule',
    name,
    '--for',
    '3000d',
    '--comment',
    'Deployment',
    '--all',
  );
  expect(silenced).toMatchObject({ ok: true, result: { matcher: { rule: name }, active: true } });
  expect((await svc('silence', '--rule', name, '--for', '3000d', '--all')).stdout).toMatch(
    /^Silenced until .*\nTo end it: svc alerts unsilence sil_\S+\n$/,
  );
  expect((await svc('silence', '--for', '2h')).code).toBe(2);

  const { isTTY, columns } = process.stdout;
  try {
    Object.assign(process.stdout, { isTTY: true, columns: 80 });
    const style = createStyle({ isTTY: false }, {});
    const all = await gateway.call(listAlertSilences, { query: {} });
    for (const shown of [list.text!(listed.result, style), silences.text!(all as never, style)])
      expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  } finally {
    Object.assign(process.stdout, { isTTY, columns });
  }
});
