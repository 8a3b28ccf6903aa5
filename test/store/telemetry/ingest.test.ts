import { describe, expect, test } from 'vitest';
import { EVENT_LINE } from '../../../src/kit/telemetry/analytics.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import type { LogFilter, TelemetryStore } from '../../../src/store/ports/telemetry.ts';
import { Ingest } from '../../../src/store/telemetry/ingest.ts';
import { tempDir } from '../../support/daemon.ts';
import { NOON, openTelemetry } from '../../support/telemetry.ts';

const open = async (): Promise<TelemetryStore> => openTelemetry(await tempDir());

describe('ingest', () => {
  const NONE = { perSecond: 0, atOnce: 0 };
  function start(rates = { perSecond: 10, atOnce: 5 }, sharedRates = NONE) {
    const clock = manualClock(NOON);
    return { clock, ingest: new Ingest({ now: clock.now, rates, sharedRates }) };
  }
  const line = (level: string, message: string) => `${JSON.stringify({ level, time: 1, message })}\n`;

  test('a service above its rate loses ordinary lines, but no warnings and no lines of others', () => {
    const { clock, ingest } = start();
    for (let n = 0; n < 20; n++) ingest.take('gateway', line('info', 'noise'));
    ingest.take('gateway', line('error', 'bad'));
    ingest.take('rest', line('info', 'quiet'));
    const batch = ingest.batch()!;
    expect(batch.logs.map(({ message }) => message)).toEqual([...Array(5).fill('noise'), 'bad', 'quiet']);
    expect(batch.counts).toEqual({ 'logs.kept': 7, 'logs.dropped': 15 });
    expect(ingest.batch()).toBeUndefined();
    clock.advance(200);
    for (let n = 0; n < 5; n++) ingest.take('gateway', line('info', 'later'));
    expect(ingest.batch()!.logs).toHaveLength(2);
  });

  test('events above the rate are counted, but not stored', () => {
    const { ingest } = start();
    const text = `${EVENT_LINE}"id":"1","type":"x","ts":"2030-01-01T00:00:00.000Z","source":{"product":"svc","version":"1"},"runId":"r","ctx":{"tenantId":"acme","count":3}}\n`;
    for (let n = 0; n < 7; n++) ingest.take('rest', text);
    const { events, counts } = ingest.batch()!;
    expect(events.map(({ keep }) => keep)).toEqual([true, true, true, true, true, false, false]);
    expect(events[0]).toMatchObject({ tenantId: 'acme', occurrences: 3, ingestTs: NOON });
    expect(counts).toEqual({ 'events.kept': 5, 'events.counted': 2 });
  });

  test('unused shares of the common rate are available to any service', () => {
    const { clock, ingest } = start(undefined, { perSecond: 100, atOnce: 20 });
    for (let n = 0; n < 40; n++) ingest.take('gateway', line('info', 'noise'));
    expect(ingest.batch()!.counts).toEqual({ 'logs.kept': 25, 'logs.dropped': 15 });
    clock.advance(100);
    for (let n = 0; n < 40; n++) ingest.take('rest', line('info', 'noise'));
    expect(ingest.batch()!.counts).toEqual({ 'logs.kept': 15, 'logs.dropped': 25 });
  });

  test('dropped records are counted by minute, service and tenant, and results state their number', async () => {
    const { clock, ingest } = start({ perSecond: 1, atOnce: 1 });
    const of = (tenantId: string, message = 'm') =>
      `${JSON.stringify({ level: 'info', time: 1, tenantId, message })}\n`;
    const tricky = '"tenantId":"other"';
    for (const each of [of('acme'), of('acme'), of('acme', tricky), of('other'), line('info', tricky)])
      ingest.take('rest', each);
    const event = `${EVENT_LINE}"id":"1","type":"x","ts":"2030-01-01T00:00:00.000Z","source":{"product":"svc","version":"1"},"runId":"r","ctx":{"tenantId":"acme"}}\n`;
    for (let n = 0; n < 4; n++) ingest.take('gateway', event);
    ingest.lost('gateway', 6);
    const store = await open();
    await store.append(ingest.batch()!);
    clock.advance(minutes(5));
    for (let n = 0; n < 3; n++) ingest.take('rest', of('acme'));
    await store.append(ingest.batch()!);
    const dropped = async (filter: LogFilter) => (await store.logs(filter, { limit: 1, offset: 0 })).dropped;
    expect(await dropped({})).toEqual({ logs: 12, events: 3, unattributed: 6 });
    // A tenant cannot be told that nothing of its own is missing while nobody knows whose those lines were.
    expect(await dropped({ tenantId: 'acme' })).toEqual({ logs: 4, events: 3, unattributed: 6 });
    expect(await dropped({ tenantId: 'other' })).toEqual({ logs: 1, events: 0, unattributed: 6 });
    expect(await dropped({ tenantId: 'other', services: ['rest'] })).toEqual({
      logs: 1,
      events: 0,
      unattributed: 0,
    });
    expect(await dropped({ services: ['gateway'] })).toEqual({ logs: 6, events: 3, unattributed: 6 });
    expect(await dropped({ to: NOON + minutes(1) })).toEqual({ logs: 10, events: 3, unattributed: 6 });
    expect(await dropped({ from: NOON + minutes(5) })).toEqual({ logs: 2, events: 0, unattributed: 0 });
    const limits = {
      logsBefore: NOON + minutes(2),
      eventsBefore: NOON + minutes(2),
      maxBytes: 1e9,
    };
    while (await store.prune(limits));
    expect(await dropped({})).toEqual({ logs: 2, events: 0, unattributed: 0 });
  });

  test('records of a batch that is dropped count for their tenant, service and minute', async () => {
    const { clock, ingest } = start({ perSecond: 2, atOnce: 2 });
    const of = (tenantId: string) =>
      `${JSON.stringify({ level: 'info', time: clock.now(), tenantId, message: 'm' })}\n`;
    const event = `${EVENT_LINE}"id":"1","type":"x","ts":"${new Date(NOON).toISOString()}","source":{"product":"svc","version":"1"},"runId":"r","ctx":{"tenantId":"acme"}}\n`;
    for (let n = 0; n < 3; n++) ingest.take('rest', of('acme'));
    ingest.take('gateway', event);
    const first = ingest.batch()!;
    clock.advance(minutes(3));
    expect(ingest.dropped(first)).toBe(3);
    ingest.take('rest', of('acme'));
    const second = ingest.batch()!;
    expect(second.counts).toEqual({ 'logs.dropped': 3, 'logs.kept': 1, 'events.dropped': 1 });
    expect(ingest.dropped(second)).toBe(4);
    const store = await open();
    await store.append(ingest.batch()!);
    const dropped = async (filter: LogFilter) => (await store.logs(filter, { limit: 1, offset: 0 })).dropped;
    expect(await dropped({ tenantId: 'acme', to: NOON + minutes(1) })).toEqual({
      logs: 3,
      events: 1,
      unattributed: 0,
    });
    expect(await dropped({ services: ['rest'] })).toEqual({ logs: 4, events: 0, unattributed: 0 });
    expect(await store.counts()).toEqual({ 'logs.dropped': 4, 'events.dropped': 1 });
  });

  test('dropped lines of more tenants than are counted separately count for an unknown tenant', () => {
    const { ingest } = start({ perSecond: 1, atOnce: 1 });
    const of = (tenantId: string) =>
      `${JSON.stringify({ level: 'info', time: 1, tenantId, message: 'm' })}\n`;
    for (let n = 0; n < 1100; n++) ingest.take('rest', of(`t${n}`));
    for (let n = 0; n < 5; n++) ingest.take('rest', of('t1'));
    const { dropped } = ingest.batch()!;
    expect(dropped.filter(({ tenantId }) => tenantId === null)).toMatchObject([{ kind: 'logs', count: 99 }]);
    expect(dropped.find(({ tenantId }) => tenantId === 't1')).toMatchObject({ count: 6 });
    expect(dropped).toHaveLength(1001);
  });

  test('a line that is not a record becomes a message, and fields of wrong types are tolerated', () => {
    const { ingest } = start();
    ingest.take(
      'rest',
      'FATAL ERROR: heap\n{"level":7,"time":"x","message":"odd","meta":[1],"requestId":{}}\n[1]\n\n',
    );
    expect(ingest.batch()!.logs).toEqual([
      expect.objectContaining({ serviceId: 'rest', message: 'FATAL ERROR: heap', layer: 'process' }),
      {
        level: 'info',
        time: NOON,
        serviceId: 'rest',
        logsSource: 'platform',
        layer: 'service',
        message: 'odd',
      },
      expect.objectContaining({ message: '[1]' }),
    ]);
  });
});
