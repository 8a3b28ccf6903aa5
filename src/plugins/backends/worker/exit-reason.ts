import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';

/** Reason for which the service ended a process. */
export type EndReason =
  | { kind: 'memory'; usedMb: number; limitMb: number }
  | { kind: 'children'; max: number }
  | { kind: 'protocol'; what: string }
  | { kind: 'timeout' }
  | { kind: 'cancelled' }
  | { kind: 'start'; afterMs: number }
  | { kind: 'blocked'; afterMs: number }
  | { kind: 'idle' }
  | { kind: 'closing' };

export interface ProcessExit {
  code: number | null;
  signal: string | null;
  ended: EndReason | null;
  /** The error that ended the process, if the runner was able to report it. */
  fatal: { reason: string; message: string } | null;
  /** Last part of the process's stderr output. */
  stderr: string;
  memoryMb: number;
  wasReady: boolean;
  hadLoaded: boolean;
}

/** Matches the messages that V8 writes to stderr before it aborts because its heap is full. */
const HEAP_EXHAUSTED = /heap out of memory|Allocation failed|FatalProcessOutOfMemory/i;

/**
 * Returns the error of a call whose process ended. In a process with other calls (`shared`), `details.interrupted` is
 * set, because another call might have ended the process.
 */
export function lostProcess(exit: ProcessExit, pluginId: string, shared = false): PlatformError {
  if (!exit.wasReady) return startFailure(exit, pluginId);
  const { message, details } = describeExit(exit);
  const phase = exit.hadLoaded || exit.ended ? {} : { diedLoading: true };
  // A call counts as interrupted if another call ended the process by a timeout or cancellation.
  const wasInterrupted = shared || exit.ended?.kind === 'timeout' || exit.ended?.kind === 'cancelled';
  return new PlatformError('EXECUTION_ERROR', `The process of plugin ${pluginId} ${message}`, {
    details: { ...details, ...phase, ...(wasInterrupted ? { interrupted: true } : {}) },
  });
}

function startFailure(exit: ProcessExit, pluginId: string): PlatformError {
  const why =
    exit.ended?.kind === 'start'
      ? `was not ready after ${exit.ended.afterMs} ms.`
      : describeExit(exit).message;
  const said = exit.stderr.trim().slice(-500);
  return new PlatformError(
    'SANDBOX_ERROR',
    `The sandbox of plugin ${pluginId} could not be started: its process ${why} Its stderr output is in the log.`,
    {
      details: { exitCode: exit.code, signal: exit.signal },
      // Output of plugin code must appear only in the log. The cause is logged and never sent to callers.
      ...(said ? { cause: new Error(`The process wrote to stderr: ${said}`) } : {}),
    },
  );
}

export function describeExit(exit: ProcessExit): { message: string; details: Record<string, unknown> } {
  const { code, signal, ended, fatal } = exit;
  if (ended?.kind === 'memory') {
    const { usedMb, limitMb } = ended;
    return {
      message: `used ${usedMb} MB of memory and was ended; ${limitMb} MB are allowed (memoryMb of execution.worker or execution.container, permissions.quotas.memoryMb).`,
      details: { reason: 'memory', usedMb, limitMb },
    };
  }
  if (ended?.kind === 'children') {
    const { max } = ended;
    return {
      message: `had more than ${max} child processes and was ended.`,
      details: { reason: 'children', maxChildren: max },
    };
  }
  if (ended?.kind === 'protocol') {
    return { message: `was ended because it ${ended.what}.`, details: { reason: 'protocol' } };
  }
  if (ended?.kind === 'blocked') {
    return {
      message: `was ended because code that ran after a result blocked it for ${ended.afterMs} ms.`,
      details: { reason: 'blocked' },
    };
  }
  if (ended?.kind === 'timeout' || ended?.kind === 'cancelled') {
    const what = ended.kind === 'timeout' ? 'timed out' : 'was cancelled';
    return { message: `was ended because another of its calls ${what}.`, details: { reason: ended.kind } };
  }
  if (ended)
    return { message: 'was ended because the platform is stopping.', details: { reason: ended.kind } };
  if (fatal) {
    return { message: `ended by an ${fatal.reason}: ${fatal.message}`, details: { reason: 'fatal' } };
  }
  if (HEAP_EXHAUSTED.test(exit.stderr)) {
    return {
      message: `ran out of memory; ${exit.memoryMb} MB are allowed (memoryMb of execution.worker or execution.container, permissions.quotas.memoryMb).`,
      details: { reason: 'memory', limitMb: exit.memoryMb },
    };
  }
  if (signal) return { message: `was killed by ${signal}.`, details: { reason: 'signal', signal } };
  return {
    message: `exited with code ${code} before the handler had returned (process.exit?).`,
    details: { reason: 'exit', exitCode: code },
  };
}

/**
 * Returns a SANDBOX_ERROR that wraps an error from before the start of the process. Returns a `PlatformError`
 * unchanged.
 */
export function asSandboxError(error: unknown, pluginId: string): PlatformError {
  if (error instanceof PlatformError) return error;
  return new PlatformError(
    'SANDBOX_ERROR',
    `The sandbox of plugin ${pluginId} could not be prepared: ${messageOf(error)}`,
    {
      cause: error,
    },
  );
}
