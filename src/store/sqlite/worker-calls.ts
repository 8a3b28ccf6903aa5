import type { Worker } from 'node:worker_threads';
import type { PlatformCode } from '../../contracts/index.ts';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';

/** A call to a worker thread that owns a database connection. */
export interface WorkerCall {
  id: number;
  method: string;
  args: unknown[];
}

export type WorkerReply = { id: number } & (
  | { ok: true; value: unknown }
  | { ok: false; error: { code: PlatformCode; message: string; details: Record<string, unknown> } }
);

export interface WorkerCalls {
  /** Rejects with the error of the called method, or with STORE_ERROR if the thread has ended. */
  call(method: string, args: unknown[]): Promise<never>;
  close(): Promise<void>;
}

export interface WorkerCallsOptions {
  start(): Worker;
  clock: Clock;
  idleMs: number;
  /** Name of the thread in error messages. */
  name: string;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Calls methods of a store on a worker thread, so that slow queries do not block the event loop. To save memory, the
 * thread ends after `idleMs` without calls.
 */
export function createWorkerCalls({ start, clock, idleMs, name }: WorkerCallsOptions): WorkerCalls {
  let worker: Worker | undefined;
  let lastId = 0;
  let lastCallAt = 0;
  let cancelIdle = (): void => {};
  const waiting = new Map<number, Waiting>();

  function open(): Worker {
    const started = start();
    started.on('message', (message: WorkerReply) => {
      const pending = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.ok) pending?.resolve(message.value);
      else {
        const { code, message: text, details } = message.error;
        pending?.reject(new PlatformError(code, text, { details }));
      }
    });
    const ended = (reason: string): void => {
      if (worker !== started) return;
      worker = undefined;
      const error = new PlatformError('STORE_ERROR', `The ${name} ended: ${reason}.`);
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on('error', (error) => ended(messageOf(error)));
    started.on('exit', () => ended('it was closed'));
    return started;
  }
  function endWhenIdle(): void {
    cancelIdle();
    cancelIdle = clock.after(idleMs, () => {
      if (waiting.size > 0 || clock.monotonic() - lastCallAt < idleMs) endWhenIdle();
      else void close();
    });
  }
  async function close(): Promise<void> {
    cancelIdle();
    await worker?.terminate();
  }
  return {
    call(method, args) {
      if (!worker) {
        worker = open();
        endWhenIdle();
      }
      lastCallAt = clock.monotonic();
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
        worker!.postMessage({ id, method, args } satisfies WorkerCall);
      });
    },
    close,
  };
}

/** Executes a call on the worker thread and returns the reply. */
export async function answerCall(
  { id, method, args }: WorkerCall,
  open: () => Promise<unknown>,
): Promise<WorkerReply> {
  try {
    const store = (await open()) as Record<string, (...args: unknown[]) => Promise<unknown>>;
    return { id, ok: true, value: await store[method]!(...args) };
  } catch (error) {
    const code = error instanceof PlatformError ? error.code : 'INTERNAL_ERROR';
    const details = error instanceof PlatformError ? error.details : {};
    return { id, ok: false, error: { code, message: messageOf(error), details } };
  }
}
