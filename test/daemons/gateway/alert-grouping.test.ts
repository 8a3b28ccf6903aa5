import { expect, test } from 'vitest';
import { AlertRuleSettings } from '../../../src/contracts/index.ts';
import {
  type AlertState,
  fire,
  flushGroup,
  hasCounted,
  MAX_OPEN_ALERTS,
  newGroup,
  openAlert,
  repeatAlert,
  resolveAlert,
  silence,
} from '../../../src/daemons/gateway/domain/alerts/grouping.ts';
import { matchesPattern } from '../../../src/daemons/gateway/domain/alerts/matching.ts';
import type { Occurrence } from '../../../src/daemons/gateway/domain/alerts/occurrence.ts';
import type { Rule } from '../../../src/daemons/gateway/domain/alerts/rule-book.ts';
import { printedRandom } from '../../support/random.ts';

const ruleOf = (change: object = {}): Rule => ({
  ...{ namespaceId: '*', name: 'r', declared: false, createdAt: 0, updatedAt: 0 },
  settings: AlertRuleSettings.parse({
    kind: 'queue.depth',
    groupWaitMs: 100,
    repeatIntervalMs: 60_000,
    ...change,
  }),
});
const occurrence = (id: string, at: number): Occurrence => ({
  ...{ kind: 'queue.depth', title: id, message: '', path: null, at, fact: null, origins: [] },
  object: { type: 'queue', id, namespaceId: 'default', labels: {} },
});

test.each([
  ['a*c', 'abbc', true],
  ['*', '', true],
  ['a*', 'ba', false],
  ['a*a', 'a', false],
  ['*b*', 'abc', true],
  ['a.c', 'abc', false],
  ['ab', 'abc', false],
])('the pattern %s matches %s: %s', (pattern, text, isMatch) => {
  expect(matchesPattern(pattern, text)).toBe(isMatch);
});

test('a fact of the workflow service that is read twice counts once', () => {
  const rule = ruleOf();
  const group = newGroup('g', rule);
  const fact = { source: 'runs', seq: 5 };
  const first = { ...occurrence('a', 0), fact };
  const alert = openAlert({ rule, group, occurrence: first, silenceId: null, now: 0, newId: () => 'a' })!;
  expect(hasCounted(alert, fact)).toBe(true);
  expect(hasCounted(alert, { source: 'runs', seq: 6 })).toBe(false);
  repeatAlert(alert, { ...first, fact: { source: 'runs', seq: 6 } }, 5);
  expect(alert).toMatchObject({ count: 2, lastAt: 5 });
});

test('a group that is full counts further occurrences, and reports their number', () => {
  const rule = ruleOf();
  const group = newGroup('g', rule);
  let n = 0;
  const raise = () =>
    openAlert({
      rule,
      group,
      occurrence: occurrence(`o${n}`, 0),
      silenceId: null,
      now: 0,
      newId: () => `a${n++}`,
    });
  const firing = Array.from({ length: MAX_OPEN_ALERTS }, () => raise()!);
  expect([raise(), raise()]).toEqual([undefined, undefined]);
  const flush = flushGroup(group, rule, { firing, ended: [], now: 100 }, () => 'i');
  expect(flush).toMatchObject({ reason: 'firing', uncounted: 2, firing: MAX_OPEN_ALERTS });
  expect(group.uncounted).toBe(0);
});

test('when all alerts of an incident have ended without a message, the next one begins a new incident', () => {
  const rule = ruleOf({ groupWaitMs: 0 });
  const group = newGroup('g', rule);
  let n = 0;
  const fireAndSend = (now: number) => {
    const id = `a${n++}`;
    const occurred = occurrence(id, now);
    const alert = openAlert({ rule, group, occurrence: occurred, silenceId: null, now, newId: () => id })!;
    const { incident } = flushGroup(group, rule, { firing: [alert], ended: [], now }, () => `of ${id}`)!;
    return { alert, incident };
  };
  const first = fireAndSend(0);
  resolveAlert(first.alert, group, { rule, now: 1, isQuiet: true });
  const second = fireAndSend(2);
  expect([first.incident, second.incident]).toEqual(['of a0', 'of a1']);
  // An end that is sent belongs to the incident of its alert.
  resolveAlert(second.alert, group, { rule, now: 3 });
  const ends = flushGroup(group, rule, { firing: [], ended: [second.alert], now: 4 }, () => 'another');
  expect(ends).toMatchObject({ reason: 'resolved', incident: 'of a1', firing: 0 });
  expect(fireAndSend(5).incident).toBe('of a2');
});

/** Random lives of a group, with the rules that must hold after each step. */
test('whatever happens, each firing alert is sent once as new, and each end of a sent one is sent once', () => {
  const random = printedRandom();
  for (let round = 0; round < 200; round++) {
    const rule = ruleOf();
    const group = newGroup('g', rule);
    const alerts: AlertState[] = [];
    const toldNew = new Map<string, number>();
    const toldEnd = new Map<string, number>();
    let now = 0;
    for (let step = 0; step < 60; step++) {
      now += Math.floor(random() * 80);
      const alive = alerts.filter(({ state }) => state !== 'resolved');
      const picked = alive[Math.floor(random() * alive.length)];
      const dice = random();
      if (dice < 0.35) {
        const id = `a${alerts.length}`;
        const silenceId = random() < 0.2 ? 's' : null;
        alerts.push(
          openAlert({ rule, group, occurrence: occurrence(id, now), silenceId, now, newId: () => id })!,
        );
      } else if (picked && dice < 0.55) resolveAlert(picked, group, { rule, now });
      else if (picked?.state === 'firing' && dice < 0.65) silence(picked, group, 's');
      else if (picked?.state === 'silenced' && dice < 0.75) {
        toldNew.delete(picked.id);
        fire(picked, group, rule, now);
      }
      expect(group.open).toBe(alerts.filter(({ state }) => state === 'firing').length);
      if (group.flushAt === null || group.flushAt > now) continue;
      const firing = alerts.filter(({ state }) => state === 'firing');
      const notified = group.notified;
      const ended = group.resolved.map((id) => alerts.find((alert) => alert.id === id)!);
      const hadEnded = ended.length > 0;
      const flush = flushGroup(group, rule, { firing, ended, now }, () => `i${now}`);
      if (!flush) continue;
      if (flush.reason === 'firing')
        for (const { id } of flush.alerts.filter(({ n }) => n > notified))
          toldNew.set(id, (toldNew.get(id) ?? 0) + 1);
      if (flush.reason === 'resolved')
        for (const { id } of flush.alerts) toldEnd.set(id, (toldEnd.get(id) ?? 0) + 1);
      expect(hadEnded || flush.reason !== 'resolved').toBe(true);
    }
    for (const times of [...toldNew.values(), ...toldEnd.values()]) expect(times).toBe(1);
    // Nothing that fires is forgotten: it was sent, or its notification is due.
    for (const alert of alerts.filter(({ state }) => state === 'firing'))
      expect(toldNew.has(alert.id) || group.flushAt !== null).toBe(true);
    expect(group.flushAt !== null || group.resolved.length === 0).toBe(true);
  }
});
