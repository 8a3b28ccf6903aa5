import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../kit/clock.ts';
import { minutes } from '../../kit/duration.ts';
import { messageOf, PlatformError } from '../../kit/errors.ts';
import type { TelemetryQueries } from '../ports/telemetry.ts';
import type { FromReader, ReaderRequest } from './telemetry-protocol.ts';
import { startTelemetryThread } from './telemetry-writer.ts';

export interface TelemetryReader extends TelemetryQueries {
  close(): Promise<void>;
}

const IDLE_MS = minutes(1);

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Asks `telemetry.db` from a thread of its own, started by the first question and ended after an idle minute: a search
 * through millions of records stops nobody, and whoever never asks pays no memory. Rejects with STORE_ERROR.
 */
export function createTelemetryReader({
  dataDir,
  clock,
}: {
  dataDir: string;
  clock: Clock;
}): TelemetryReader {
  let worker: Worker | undefined;
  let lastId = 0;
  let lastAskedAt = 0;
  let cancelIdle = (): void => {};
  const waiting = new Map<number, Waiting>();

  function start(): Worker {
    const started = startTelemetryThread({ mode: 'read', dataDir });
    started.on('message', (message: FromReader) => {
      const asked = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.ok) asked?.resolve(message.value);
      else {
        const { code, message: text, details } = message.error;
        asked?.reject(new PlatformError(code, text, { details }));
      }
    });
    const ended = (reason: string): void => {
      if (worker !== started) return;
      worker = undefined;
      const error = new PlatformError('STORE_ERROR', `The telemetry reader ended: ${reason}.`);
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on('error', (error) => ended(messageOf(error)));
    started.on('exit', () => ended('it was closed'));
    return started;
  }
  function endWhenIdle(): void {
    cancelIdle();
    cancelIdle = clock.after(IDLE_MS, () => {
      if (waiting.size > 0 || clock.now() - lastAskedAt < IDLE_MS) endWhenIdle();
      else void close();
    });
  }
  async function close(): Promise<void> {
    cancelIdle();
    await worker?.terminate();
  }
  function ask(method: ReaderRequest['method'], args: unknown[]): Promise<never> {
    if (!worker) {
      worker = start();
      endWhenIdle();
    }
    lastAskedAt = clock.now();
    const id = ++lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      worker!.postMessage({ id, method, args } satisfies ReaderRequest);
    });
  }
  return {
    logs: (...args) => ask('logs', args),
    logsAfter: (...args) => ask('logsAfter', args),
    latestLogs: (...args) => ask('latestLogs', args),
    events: (...args) => ask('events', args),
    stats: (...args) => ask('stats', args),
    daily: (...args) => ask('daily', args),
    counts: (...args) => ask('counts', args),
    close,
  };
}
