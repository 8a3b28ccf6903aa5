import { ANALYTICS_SCHEMA, type AnalyticsEvent } from '../../contracts/index.ts';
import { createBoundedCache } from '../data/bounded-cache.ts';
import { version } from '../files/paths.ts';
import { createTokenBucket, type TokenBucket } from '../limits/token-bucket.ts';
import type { Random } from '../security/random.ts';
import type { Clock } from '../time/clock.ts';
import { seconds } from '../time/duration.ts';
import type { LineOutput } from './output.ts';
import { maskTenantSecretsIn, redact } from './redact.ts';

/**
 * Prefix of analytics events. The prefix distinguishes analytics events from log records, which are written to the same
 * pipe.
 */
export const EVENT_LINE = `{"schema":"${ANALYTICS_SCHEMA}",`;

/** Fields of an analytics event. `source` defaults to the platform. */
export interface TrackedEvent {
  tenantId?: string | undefined;
  /** Id of the workflow run, execution or request. If empty, the event's own id is used. */
  runId: string;
  payload?: unknown;
  actor?: AnalyticsEvent['actor'];
  source?: AnalyticsEvent['source'];
  /** Further fields of the event's `ctx`, besides `tenantId`. */
  ctx?: NonNullable<AnalyticsEvent['ctx']>;
}

/** An event of an operation that a handler can repeat in a loop. Such events are rate limited. */
export interface FrequentEvent extends TrackedEvent {
  payload: Record<string, string | number>;
}

export interface Analytics {
  /** Writes one event. The call takes a few microseconds. @spec Analytics event */
  track(type: string, event: TrackedEvent): void;
  /**
   * Writes up to 100 events per second for each type and tenant. Further events are merged every ten seconds. A merged
   * event holds the mean `durationMs`, the sums of other numbers, and the event count.
   */
  trackOften(type: string, event: FrequentEvent): void;
  flush(): void;
}

export interface AnalyticsOptions {
  output: LineOutput;
  clock: Clock;
  random: Random;
}

const PLATFORM: AnalyticsEvent['source'] = { product: 'svc', version };
/** Event limit per type and tenant. docs/observability.md documents the rate and the burst. */
const EVENTS_PER_SECOND = 100;
const EVENT_BURST = 1000;
const MERGE_INTERVAL_MS = seconds(10);
/**
 * Maximum number of different merged events in memory. A limit is needed because callers choose the names in payloads.
 */
const MAX_KINDS = 1000;

interface Kind {
  type: string;
  event: FrequentEvent;
  count: number;
  numbers: Record<string, number>;
}

export class AnalyticsWriter implements Analytics {
  readonly #output: LineOutput;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #budgets = createBoundedCache<TokenBucket>(MAX_KINDS);
  #kinds = new Map<string, Kind>();

  constructor({ output, clock, random }: AnalyticsOptions) {
    this.#output = output;
    this.#clock = clock;
    this.#random = random;
  }

  track(type: string, event: TrackedEvent): void {
    this.#write(
      type,
      event.payload === undefined ? event : { ...event, payload: redact(event.payload, event.tenantId) },
    );
  }

  trackOften(type: string, event: FrequentEvent): void {
    if (!this.#isWithinRate(type, event.tenantId)) {
      this.#merge(type, event);
      return;
    }
    const { durationMs, ...payload } = event.payload;
    const rounded = typeof durationMs === 'number' ? { durationMs: round(durationMs) } : {};
    this.#write(type, { ...event, payload: { ...payload, ...rounded } });
  }

  flush(): void {
    const merged = this.#kinds;
    this.#kinds = new Map();
    for (const { type, event, count, numbers } of merged.values()) {
      const { tenantId, source, payload } = event;
      const { durationMs, ...sums } = numbers;
      const mean = durationMs === undefined ? {} : { durationMs: round(durationMs / count) };
      this.#write(type, {
        tenantId,
        runId: '',
        ...(source ? { source } : {}),
        payload: { ...payload, ...sums, ...mean },
        ctx: { count },
      });
    }
  }

  #isWithinRate(type: string, tenantId = ''): boolean {
    const key = `${type}\0${tenantId}`;
    let bucket = this.#budgets.get(key);
    if (!bucket) {
      bucket = createTokenBucket(this.#clock, EVENTS_PER_SECOND, EVENT_BURST);
      this.#budgets.set(key, bucket);
    }
    return bucket.take(1);
  }

  #write(type: string, { tenantId, runId, payload, actor, source = PLATFORM, ctx }: TrackedEvent): void {
    const id = this.#random.uuid();
    const event: Omit<AnalyticsEvent, 'ingestTs'> = {
      schema: ANALYTICS_SCHEMA,
      id,
      type,
      ts: new Date(this.#clock.now()).toISOString(),
      source,
      runId: runId || id,
      ...(actor ? { actor } : {}),
      ctx: { ...(tenantId === undefined ? {} : { tenantId }), ...ctx },
      ...(payload === undefined ? {} : { payload }),
    };
    const masked = tenantId === undefined ? event : maskTenantSecretsIn(event, tenantId);
    this.#output.write(`${JSON.stringify(masked)}\n`);
  }

  #merge(type: string, event: FrequentEvent): void {
    const texts = Object.values(event.payload).filter((value) => typeof value === 'string');
    const key = [type, event.tenantId ?? '', event.source?.product ?? '', ...texts].join('\0');
    let kind = this.#kinds.get(key);
    if (!kind) {
      if (this.#kinds.size >= MAX_KINDS) this.flush();
      if (this.#kinds.size === 0) this.#clock.after(MERGE_INTERVAL_MS, () => this.flush());
      kind = { type, event, count: 0, numbers: {} };
      this.#kinds.set(key, kind);
    }
    kind.count++;
    for (const [name, value] of Object.entries(event.payload)) {
      if (typeof value === 'number') kind.numbers[name] = (kind.numbers[name] ?? 0) + value;
    }
  }
}

const round = (value: number): number => Math.round(value * 100) / 100;

/**
 * Removes event lines from a block of log lines, for log files and terminals. Returns the same buffer if the block has
 * no event lines.
 */
export function withoutEvents(lines: Buffer): Buffer {
  if (lines.indexOf(EVENT_LINE) === -1) return lines;
  const kept = lines
    .toString('utf8')
    .split('\n')
    .filter((line) => !line.startsWith(EVENT_LINE));
  return Buffer.from(kept.join('\n'));
}

/** Discards all events. Used by tests and tools. */
export const silentAnalytics: Analytics = { track: () => {}, trackOften: () => {}, flush: () => {} };
