import { ANALYTICS_SCHEMA, type AnalyticsEvent } from '../contracts/index.ts';
import { createBoundedCache } from './bounded-cache.ts';
import type { Clock } from './clock.ts';
import { seconds } from './duration.ts';
import type { LineOutput } from './output.ts';
import { version } from './paths.ts';
import type { Random } from './random.ts';
import { redact } from './redact.ts';
import { createTokenBucket, type TokenBucket } from './token-bucket.ts';

/** By these first characters the lines of events are told from those of the log, which share a pipe. */
export const EVENT_LINE = `{"schema":"${ANALYTICS_SCHEMA}",`;

/** What an event is about. Without `source` it is the platform's own. */
export interface TrackedEvent {
  tenantId?: string | undefined;
  /** The workflow run it belongs to, else the execution or request; empty: the event's own id. */
  runId: string;
  payload?: unknown;
  actor?: AnalyticsEvent['actor'];
  source?: AnalyticsEvent['source'];
  /** Joins `tenantId` in the event's `ctx`. */
  ctx?: NonNullable<AnalyticsEvent['ctx']>;
}

/** An event of an operation that a handler may repeat in a loop. */
export interface FrequentEvent extends TrackedEvent {
  payload: Record<string, string | number>;
}

export interface Analytics {
  /** Tells one event. Costs a few microseconds: its JSON, appended to the output. @spec Analytics event */
  track(type: string, event: TrackedEvent): void;
  /**
   * Tells each up to 100 a second, 1,000 at once, of a type and tenant. Those beyond are gathered into one event in ten
   * seconds for each set of texts in the payload: `durationMs` is their mean, other numbers are their sums, and `ctx.count`
   * is how many they are.
   */
  trackOften(type: string, event: FrequentEvent): void;
  /** Tells what was gathered. */
  flush(): void;
}

export interface AnalyticsOptions {
  output: LineOutput;
  clock: Clock;
  random: Random;
}

const PLATFORM: AnalyticsEvent['source'] = { product: 'svc', version };
/** Of one type and tenant, told one by one; documented in docs/observability.md. */
const EVENTS_PER_SECOND = 100;
const EVENTS_AT_ONCE = 1000;
const GATHER_MS = seconds(10);
/** Kinds gathered at a time: made-up names must not fill the memory. */
const MOST_KINDS = 1000;

interface Kind {
  type: string;
  event: FrequentEvent;
  count: number;
  numbers: Record<string, number>;
}

export function createAnalytics({ output, clock, random }: AnalyticsOptions): Analytics {
  let kinds = new Map<string, Kind>();
  const budgets = createBoundedCache<TokenBucket>(MOST_KINDS);

  function isWithinRate(type: string, tenantId = ''): boolean {
    const key = `${type}\0${tenantId}`;
    let bucket = budgets.get(key);
    if (!bucket) {
      bucket = createTokenBucket(clock, EVENTS_PER_SECOND, EVENTS_AT_ONCE);
      budgets.set(key, bucket);
    }
    return bucket.take(1);
  }

  function track(
    type: string,
    { tenantId, runId, payload, actor, source = PLATFORM, ctx }: TrackedEvent,
  ): void {
    const now = clock.now();
    const id = random.uuid();
    const event: Omit<AnalyticsEvent, 'ingestTs'> = {
      schema: ANALYTICS_SCHEMA,
      id,
      type,
      ts: new Date(now).toISOString(),
      source,
      runId: runId || id,
      ...(actor ? { actor } : {}),
      ctx: { ...(tenantId === undefined ? {} : { tenantId }), ...ctx },
      ...(payload === undefined ? {} : { payload }),
    };
    output.write(`${JSON.stringify(event)}\n`);
  }
  function flush(): void {
    const told = kinds;
    kinds = new Map();
    for (const { type, event, count, numbers } of told.values()) {
      const { tenantId, source, payload } = event;
      const { durationMs, ...sums } = numbers;
      const mean = durationMs === undefined ? {} : { durationMs: round(durationMs / count) };
      track(type, {
        tenantId,
        runId: '',
        ...(source ? { source } : {}),
        payload: { ...payload, ...sums, ...mean },
        ctx: { count },
      });
    }
  }
  function gather(type: string, event: FrequentEvent): void {
    const texts = Object.values(event.payload).filter((value) => typeof value === 'string');
    const key = [type, event.tenantId ?? '', event.source?.product ?? '', ...texts].join('\0');
    let kind = kinds.get(key);
    if (!kind) {
      if (kinds.size >= MOST_KINDS) flush();
      if (kinds.size === 0) clock.after(GATHER_MS, flush);
      kind = { type, event, count: 0, numbers: {} };
      kinds.set(key, kind);
    }
    kind.count++;
    for (const [name, value] of Object.entries(event.payload)) {
      if (typeof value === 'number') kind.numbers[name] = (kind.numbers[name] ?? 0) + value;
    }
  }

  return {
    track: (type, event) =>
      track(type, event.payload === undefined ? event : { ...event, payload: redact(event.payload) }),
    trackOften(type, event) {
      if (!isWithinRate(type, event.tenantId)) return gather(type, event);
      const { durationMs, ...payload } = event.payload;
      const rounded = typeof durationMs === 'number' ? { durationMs: round(durationMs) } : {};
      track(type, { ...event, payload: { ...payload, ...rounded } });
    },
    flush,
  };
}

const round = (value: number): number => Math.round(value * 100) / 100;

/** Lines without those of events: what a log file and a terminal show. The same bytes where there are none. */
export function withoutEvents(lines: Buffer): Buffer {
  if (lines.indexOf(EVENT_LINE) === -1) return lines;
  const kept = lines
    .toString('utf8')
    .split('\n')
    .filter((line) => !line.startsWith(EVENT_LINE));
  return Buffer.from(kept.join('\n'));
}

/** Tells nothing; for tests and tools. */
export const silentAnalytics: Analytics = { track: () => {}, trackOften: () => {}, flush: () => {} };
