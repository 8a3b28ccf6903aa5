import { describe, expect, test } from 'vitest';
import type {
  AlertGroupRecord,
  AlertNotificationRecord,
  AlertRecord,
  AlertSettingRecord,
  AlertStore,
  NewAlertFact,
} from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const FACT: NewAlertFact = { kind: 'run.failed', namespaceId: 'acme', objectId: 'r1', body: '{}', at: 5 };
const SETTING: AlertSettingRecord = {
  kind: 'channel',
  namespaceId: 'acme',
  name: 'ops',
  body: '{}',
  sealed: 'v1.sealed',
  createdAt: 1,
  updatedAt: 1,
};
const ALERT: AlertRecord = {
  id: 'alert_1',
  version: 1,
  namespaceId: 'acme',
  rule: 'runs',
  kind: 'run.failed',
  objectKey: 'r1',
  groupKey: 'g1',
  state: 'firing',
  firstAt: 5,
  lastAt: 5,
  resolvedAt: null,
  body: '{"n":1}',
};
const GROUP: AlertGroupRecord = {
  key: 'g1',
  version: 1,
  namespaceId: 'acme',
  rule: 'runs',
  flushAt: 10,
  idleAt: null,
  body: '{}',
};
const NOTIFICATION: AlertNotificationRecord = {
  id: 'n1',
  version: 1,
  namespaceId: 'acme',
  groupKey: 'g1',
  channel: 'ops',
  status: 'pending',
  nextAt: 10,
  createdAt: 10,
  body: '{}',
};

async function addAll(port: AlertStore, facts: readonly NewAlertFact[]): Promise<void> {
  for (const [n, fact] of facts.entries()) await port.addFactOnce(`k${n}`, fact, 1);
}

/** What every driver of AlertStore does. @spec docs/alerts.md */
export function describeAlerts(name: string, open: OpenDriver<AlertStore>): void {
  describe(`alerts: ${name}`, () => {
    test('settings are added, changed and removed, and each change raises the revision', async () => {
      const { port, reopen } = await openFresh(open);
      const before = await port.revision();
      expect(await port.putSetting(SETTING, true)).toBe(false);
      expect(await port.putSetting(SETTING, false)).toBe(true);
      expect(await port.putSetting({ ...SETTING, body: '[]' }, false)).toBe(false);
      expect(await port.revision()).toBe(before + 1);
      expect(await port.putSetting({ ...SETTING, body: '[1]', updatedAt: 2 }, true)).toBe(true);
      const again = await reopen();
      expect(await again.settings()).toEqual([{ ...SETTING, body: '[1]', updatedAt: 2 }]);
      expect(await again.removeSetting(SETTING)).toBe(true);
      expect(await again.removeSetting(SETTING)).toBe(false);
      expect(await again.revision()).toBe(before + 3);
      const silence = { ...SETTING, kind: 'silence' as const, sealed: null, updatedAt: 10 };
      await again.putSetting(silence, false);
      await again.pruneSilences(10);
      expect(await again.settings()).toHaveLength(1);
      await again.pruneSilences(11);
      expect(await again.settings()).toEqual([]);
    });

    test('a fact is handled once, together with the alert and the group', async () => {
      const { port, reopen } = await openFresh(open);
      await addAll(port, [FACT, { ...FACT, objectId: 'r2', namespaceId: null }]);
      const facts = await port.facts(10);
      expect(facts).toMatchObject([FACT, { objectId: 'r2', namespaceId: null }]);
      const { seq } = facts[0]!;
      expect(await port.commit({ facts: [seq], alerts: [ALERT], groups: [GROUP] })).toBe(true);
      expect(await port.commit({ facts: [seq], alerts: [{ ...ALERT, id: 'alert_2', objectKey: 'x' }] })).toBe(
        false,
      );
      const again = await reopen();
      expect(await again.facts(10)).toMatchObject([{ objectId: 'r2' }]);
      expect(await again.alert('alert_1')).toEqual(ALERT);
      expect(await again.alert('alert_2')).toBeUndefined();
      expect(await again.group('g1')).toEqual(GROUP);
    });

    test('a fact is added once for each key, until the key is pruned', async () => {
      const { port, second, reopen } = await openFresh(open);
      const other = await second();
      const added = await times(4, (i) => (i % 2 ? port : other).addFactOnce('n1/1-rest.json', FACT, 5));
      expect(added.filter(Boolean)).toHaveLength(1);
      const again = await reopen();
      const [fact] = await again.facts(10);
      await again.commit({ facts: [fact!.seq] });
      expect(await again.addFactOnce('n1/1-rest.json', FACT, 6)).toBe(false);
      expect(await again.addFactOnce('n1/2-rest.json', FACT, 6)).toBe(true);
      const revision = await again.revision();
      expect(await again.prune(6, 10)).toBe(1);
      expect(await again.addFactOnce('n1/2-rest.json', FACT, 7)).toBe(false);
      expect(await again.addFactOnce('n1/1-rest.json', FACT, 7)).toBe(true);
      expect(await again.revision()).toBe(revision);
    });

    test('of concurrent commits of the same facts, one succeeds, and the others change nothing', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await addAll(port, [FACT]);
      const seqs = (await port.facts(10)).map(({ seq }) => seq);
      const done = await times(6, (i) =>
        (i % 2 ? port : other).commit({ facts: seqs, alerts: [{ ...ALERT, id: `alert_${i}` }] }),
      );
      expect(done.filter(Boolean)).toHaveLength(1);
      expect(await port.list({ limit: 10 })).toHaveLength(1);
      expect(await port.facts(10)).toEqual([]);
    });

    test('a commit fails if a row or a cursor has changed, or if the object has an open alert', async () => {
      const { port } = await openFresh(open);
      expect(await port.cursor('runs')).toBe(0);
      expect(await port.commit({ cursor: { name: 'runs', from: 0, to: 7 }, alerts: [ALERT] })).toBe(true);
      expect(await port.commit({ cursor: { name: 'runs', from: 0, to: 9 } })).toBe(false);
      expect(await port.cursor('runs')).toBe(7);
      const changed = { ...ALERT, version: 2, lastAt: 9, body: '{"n":2}' };
      expect(await port.commit({ alerts: [changed], groups: [{ ...GROUP, version: 2 }] })).toBe(false);
      expect(await port.alert(ALERT.id)).toEqual(ALERT);
      expect(await port.commit({ alerts: [changed] })).toBe(true);
      expect(await port.commit({ alerts: [changed] })).toBe(false);
      expect(await port.commit({ alerts: [{ ...ALERT, id: 'alert_2' }] })).toBe(false);
      const resolved = { ...changed, version: 3, state: 'resolved' as const, resolvedAt: 12 };
      expect(await port.commit({ alerts: [resolved] })).toBe(true);
      expect(await port.commit({ alerts: [{ ...ALERT, id: 'alert_2' }] })).toBe(true);
      expect(await port.newestOf(ALERT)).toMatchObject({ id: 'alert_2' });
    });

    test('alerts are found by rule, group, state, age and filter', async () => {
      const { port } = await openFresh(open);
      const more: AlertRecord[] = [
        { ...ALERT, id: 'alert_2', objectKey: 'r2', state: 'silenced', lastAt: 50 },
        { ...ALERT, id: 'alert_3', objectKey: 'r3', state: 'resolved', resolvedAt: 9 },
        { ...ALERT, id: 'alert_4', namespaceId: 'other', groupKey: 'g2', rule: 'disk', kind: 'disk.low' },
      ];
      await port.commit({ alerts: [ALERT, ...more] });
      const ids = (found: AlertRecord[]) => found.map(({ id }) => id);
      expect(ids(await port.openOf(ALERT, 10))).toEqual(['alert_1', 'alert_2']);
      expect(ids(await port.openIn('g1', 10))).toEqual(['alert_1', 'alert_2']);
      expect(ids(await port.openBefore(['run.failed', 'disk.low'], 50, 10))).toEqual(['alert_1', 'alert_4']);
      expect(ids(await port.inState('firing', 'alert_1', 10))).toEqual(['alert_4']);
      expect(ids(await port.list({ limit: 2 }))).toEqual(['alert_4', 'alert_3']);
      expect(ids(await port.list({ limit: 9, before: 'alert_3' }))).toEqual(['alert_2', 'alert_1']);
      expect(ids(await port.list({ limit: 9, namespaceId: 'acme', state: 'firing' }))).toEqual(['alert_1']);
      expect(ids(await port.list({ limit: 9, kind: 'disk.low', rule: 'disk' }))).toEqual(['alert_4']);
      const ofObject = async (object: string, rest: object = {}) =>
        ids(await port.list({ limit: 9, object, ...rest }));
      expect(await ofObject('r2')).toEqual(['alert_2']);
      expect(await ofObject('r2', { namespaceId: 'other' })).toEqual([]);
      expect(await ofObject('r')).toEqual([]);
      expect((await port.firing()).toSorted((a, b) => (a.rule < b.rule ? -1 : 1))).toEqual([
        { namespaceId: 'other', rule: 'disk', kind: 'disk.low', alerts: 1 },
        { namespaceId: 'acme', rule: 'runs', kind: 'run.failed', alerts: 1 },
      ]);
      const parts = ['msg_1', 'msg_1/ep_1', 'msg_1/ep_2', 'msg_10', 'msg_1.', 'msg_10/ep_1'];
      await port.commit({
        alerts: parts.map((objectKey, n) => ({ ...ALERT, id: `alert_5${n}`, objectKey })),
      });
      expect(await ofObject('msg_1')).toEqual(['alert_52', 'alert_51', 'alert_50']);
      expect(await ofObject('msg_1', { before: 'alert_52' })).toEqual(['alert_51', 'alert_50']);
    });

    test('a notification waits for the earlier one of its group and channel', async () => {
      const { port } = await openFresh(open);
      const later = { ...NOTIFICATION, id: 'n2', nextAt: 5 };
      await port.commit({ groups: [GROUP], notifications: [NOTIFICATION, later] });
      await port.commit({ notifications: [{ ...NOTIFICATION, id: 'n3', channel: 'mail', nextAt: 11 }] });
      expect((await port.dueGroups(10, 5)).map(({ key }) => key)).toEqual(['g1']);
      expect(await port.dueGroups(9, 5)).toEqual([]);
      const due = async (now: number) => (await port.dueNotifications(now, 5)).map(({ id }) => id);
      expect(await due(10)).toEqual(['n1']);
      expect(await due(11)).toEqual(['n1', 'n3']);
      const sent = { ...NOTIFICATION, version: 2, status: 'sent' as const, nextAt: null };
      expect(await port.commit({ notifications: [sent] })).toBe(true);
      expect(await due(10)).toEqual(['n2']);
      expect((await port.notificationsOf('g1', 0, 2)).map(({ id }) => id)).toEqual(['n3', 'n2']);
      expect((await port.notificationsTo('acme', 'ops', 1)).map(({ id }) => id)).toEqual(['n2']);
      expect((await port.pending()).toSorted((a, b) => (a.channel < b.channel ? -1 : 1))).toEqual([
        { namespaceId: 'acme', channel: 'mail', pending: 1, oldestAt: 10 },
        { namespaceId: 'acme', channel: 'ops', pending: 1, oldestAt: 10 },
      ]);
    });

    test('resolved alerts, ended notifications and idle groups are pruned in batches', async () => {
      const { port } = await openFresh(open);
      await port.commit({
        alerts: [
          ALERT,
          ...[2, 3].map((i) => ({ ...ALERT, id: `alert_${i}`, state: 'resolved' as const, resolvedAt: i })),
        ],
        groups: [GROUP, { ...GROUP, key: 'g2', flushAt: null, idleAt: 3 }],
        notifications: [
          NOTIFICATION,
          { ...NOTIFICATION, id: 'n2', status: 'sent', nextAt: null, createdAt: 3 },
        ],
      });
      expect(await port.prune(20, 1)).toBe(3);
      expect(await port.prune(20, 10)).toBe(1);
      expect(await port.list({ limit: 10 })).toEqual([ALERT]);
      expect(await port.group('g1')).toEqual(GROUP);
      expect(await port.notificationsOf('g1', 0, 9)).toEqual([NOTIFICATION]);
    });
  });
}
