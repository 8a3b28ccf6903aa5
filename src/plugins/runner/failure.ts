import type { FrameError } from './protocol.ts';
import { placeOf, placeText } from './source-place.ts';
import { classOfThrown, type ThrownClass } from './thrown-class.ts';

const MESSAGE_CHARS = 4000;

/** An error that the runner itself throws, with a platform error code. */
export class RunnerFailure extends Error {
  readonly code: string;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: string, message: string, details?: Record<string, unknown>, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }
}

/**
 * A platform call (`ctx.state`, `ctx.fetch`, …) that was refused or has failed. Handlers can catch this error and read
 * its `code`.
 */
export class PlatformCallError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(error: FrameError) {
    super(error.message);
    this.name = 'PlatformCallError';
    this.code = error.code;
    this.details = error.details ?? {};
  }
}

/** Maps each permission name of Node to the manifest entry that grants the permission. */
const GRANTED_BY: Record<string, string> = {
  FileSystemRead: 'permissions.fs.read',
  FileSystemWrite: 'permissions.fs.write',
  ChildProcess: 'permissions.platform.childProcess',
  Net: 'permissions.network ["*"] (or use ctx.fetch with the host listed)',
};

/**
 * Converts a thrown value to the error of a frame. Only runner failures and permission refusals keep their code, so
 * that plugin code cannot forge platform errors. `stack` is only for the log.
 */
export function toFrameError(thrown: unknown, root: string): FrameError & { stack?: string } {
  const stack = textOf(() => stackOf(thrown));
  const rest = stack === '' ? {} : { stack: stack.slice(0, MESSAGE_CHARS * 2) };
  if (thrown instanceof RunnerFailure) {
    return {
      code: thrown.code,
      message: thrown.message.slice(0, MESSAGE_CHARS),
      ...(thrown.details ? { details: thrown.details } : {}),
      ...rest,
    };
  }
  const refusal = permissionRefusal(thrown);
  if (refusal) return { ...refusal, ...rest };
  const place = placeOf(thrown, root);
  const details = { ...(place ? { at: placeText(place) } : {}), ...saidOf(thrown) };
  return {
    code: 'EXECUTION_ERROR',
    message: messageOf(thrown),
    ...(Object.keys(details).length === 0 ? {} : { details }),
    ...rest,
  };
}

/** Returns the fields that a workflow's retry decision uses: error class, retry delay and error code. */
function saidOf(thrown: unknown): ThrownClass & { code?: string } {
  try {
    const { code } = readFields(thrown);
    return { ...classOfThrown(thrown), ...(typeof code === 'string' ? { code: code.slice(0, 128) } : {}) };
  } catch {
    return {};
  }
}

/**
 * Returns the stack of a thrown value. For a `RunnerFailure` that wraps a plugin error, returns the stack of the plugin
 * error.
 */
function stackOf(thrown: unknown): unknown {
  const { cause, stack } = thrown as Error;
  return thrown instanceof RunnerFailure && cause instanceof Error ? cause.stack : stack;
}

/**
 * Error codes for calls that the manifest or the config does not allow. Plugin code cannot fix the cause of such
 * errors.
 */
const REFUSALS = ['PERMISSION_DENIED', 'ADAPTER_NOT_CONFIGURED'];

function permissionRefusal(thrown: unknown): FrameError | undefined {
  if (thrown instanceof PlatformCallError && REFUSALS.includes(thrown.code)) {
    return { code: thrown.code, message: thrown.message, details: thrown.details };
  }
  const { code, permission, resource } = readFields(thrown);
  if (code !== 'ERR_ACCESS_DENIED' || typeof permission !== 'string') return undefined;
  const grant = GRANTED_BY[permission];
  const what = typeof resource === 'string' && resource !== '' ? ` (${resource})` : '';
  return {
    code: 'PERMISSION_DENIED',
    message: grant
      ? `The plugin was refused ${permission}${what}: its manifest must list it under ${grant}.`
      : `The plugin was refused ${permission}${what}: no permission grants this to plugins.`,
    details: { permission: grant ?? permission },
  };
}

function readFields(thrown: unknown): { code?: unknown; permission?: unknown; resource?: unknown } {
  try {
    const { code, permission, resource } = thrown as Record<string, unknown>;
    return { code, permission, resource };
  } catch {
    return {};
  }
}

/** Returns the message of any thrown value. Never throws, even if the conversion to a string throws. */
export function messageOf(thrown: unknown): string {
  const text = textOf(() => (thrown instanceof Error ? thrown.message : String(thrown)));
  return text.slice(0, MESSAGE_CHARS) || 'The handler threw a value without a message.';
}

function textOf(read: () => unknown): string {
  try {
    const value = read();
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}
