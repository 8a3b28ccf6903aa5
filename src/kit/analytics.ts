import { ANALYTICS_SCHEMA, type AnalyticsEvent } from '../contracts/index.ts';
import type { Clock } from './clock.ts';
import { seconds } from './duration.ts';
import type { LineOutput } from './output.ts';
import { version } from './paths.ts';
import type { Random } from './random.ts';
import { redact } from './redact.ts';

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

/** An occurrence that is told together with its like. */
export interface GatheredEvent extends Pick<TrackedEvent, 'tenantId' | 'source'> {
  payload: Record<string, string | number>;
}

export interface Analytics {
  /** Tells one event. Costs a few microseconds: its JSON, appended to the output. @spec Analytics event */
  track(type: string, event: TrackedEvent): void;
  /**
   * For what happens too often to tell each: one event every ten seconds for all occurrences of one type, tenant and
   * set of texts in the payload. `durationMs` is their mean, other numbers their sums, and `ctx.count` says how many.
   */
  gather(type: string, event: GatheredEvent): void;
  /** Tells what was gathered. */
  flush(): void;
}

export interface AnalyticsOptions {
  output: LineOutput;
  clock: Clock;
  random: Random;
}

const PLATFORM: AnalyticsEvent['source'] = { product: 'svc', version };
const GATHER_MS = seconds(10);
/** Kinds gathered at a time: made-up names must not fill the memory. */
const MOST_KINDS = 1000;

interface Kind {
  type: string;
  event: GatheredEvent;
  count: number;
  numbers: Record<string, number>;
}

export function createAnalytics({ output, clock, random }: AnalyticsOptions): Analytics {
  let kinds = new Map<string, Kind>();

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
  return {
    track: (type, event) =>
      track(type, event.payload === undefined ? event : { ...event, payload: redact(event.payload) }),
    gather(type, event) {
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
export const silentAnalytics: Analytics = { track: () => {}, gather: () => {}, flush: () => {} };
