import { PlatformError } from '../../kit/errors/errors.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import { hours } from '../../kit/time/duration.ts';
import type { JsonValue } from '../../store/ports/key-value.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { invalid, optionsArgument, textArgument, wholeArgument } from './arguments.ts';
import { type CallScope, callScope } from './call-scope.ts';
import { eventFields } from './event-fields.ts';

/** Caller of a state operation, and the namespace of the entries. */
export interface StateScope extends CallScope {
  /** Namespace of the entries: `plugin:<id>:state` or `plugin:<id>:cache`. */
  namespace: string;
}

export interface StateItem {
  key: string;
  value: JsonValue;
  /** Expiry time in epoch ms, or null if the entry never expires. */
  expiresAt: number | null;
}

/**
 * State service methods that `ctx.state` and `ctx.cache` use. The typed HTTP client of the state service implements
 * these methods.
 */
export interface StateAccess {
  get(scope: StateScope, key: string): Promise<StateItem | undefined>;
  set(scope: StateScope, key: string, value: JsonValue, ttlMs?: number): Promise<void>;
  setIfAbsent(scope: StateScope, key: string, value: JsonValue, ttlMs?: number): Promise<boolean>;
  delete(scope: StateScope, key: string): Promise<boolean>;
  increment(scope: StateScope, key: string, by: number, windowMs?: number): Promise<number>;
  list(
    scope: StateScope,
    options: { prefix: string; cursor?: string; limit: number },
  ): Promise<{ items: StateItem[]; nextCursor: string | null }>;
}

const KEY_CHARS = 512;
const CURSOR_CHARS = 1024;
const CACHE_TTL_MS = hours(1);
const MAX_TTL_MS = Number.MAX_SAFE_INTEGER;

/**
 * Creates `ctx.state` or `ctx.cache` for one plugin and tenant. If `analytics` is given, reports cache hits and misses.
 * The methods throw PERMISSION_DENIED if the manifest disables the service.
 */
export function createKeyValueService(
  kind: 'state' | 'cache',
  state: StateAccess,
  analytics?: Analytics,
): PlatformService {
  const defaultTtlMs = kind === 'cache' ? CACHE_TTL_MS : undefined;
  const scopeOf = (context: PlatformCallContext) => requireScope(kind, context);
  const ttlOf = (options: unknown) =>
    wholeArgument(optionsArgument(options).ttlMs, 'ttlMs', 1, MAX_TTL_MS) ?? defaultTtlMs;

  return {
    async get(context, [key]) {
      const scope = scopeOf(context);
      const startedAt = performance.now();
      const item = await state.get(scope, keyOf(key));
      analytics?.trackOften(item ? 'cache.hit' : 'cache.miss', {
        ...eventFields(context.request),
        payload: { namespace: scope.namespace, durationMs: performance.now() - startedAt },
      });
      return item ? { value: item.value } : {};
    },
    async set(context, [key, value, options]) {
      await state.set(scopeOf(context), keyOf(key), requireValue(value), ttlOf(options));
    },
    async setIfAbsent(context, [key, value, options]) {
      return state.setIfAbsent(scopeOf(context), keyOf(key), requireValue(value), ttlOf(options));
    },
    async delete(context, [key]) {
      return state.delete(scopeOf(context), keyOf(key));
    },
    async increment(context, [key, by, options]) {
      const step = wholeArgument(by, 'by', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? 1;
      const windowMs =
        wholeArgument(optionsArgument(options).windowMs, 'windowMs', 1, MAX_TTL_MS) ?? defaultTtlMs;
      return state.increment(scopeOf(context), keyOf(key), step, windowMs);
    },
    async list(context, [options]) {
      const { prefix, cursor, limit } = optionsArgument(options);
      return state.list(scopeOf(context), {
        prefix: prefix === undefined || prefix === '' ? '' : textArgument(prefix, 'prefix', KEY_CHARS),
        limit: wholeArgument(limit, 'limit', 1, 1000) ?? 100,
        ...(cursor === undefined || cursor === null
          ? {}
          : { cursor: textArgument(cursor, 'cursor', CURSOR_CHARS) }),
      });
    },
  };
}

function keyOf(key: unknown): string {
  return textArgument(key, 'the key', KEY_CHARS);
}

function requireValue(value: unknown): JsonValue {
  if (value === undefined) throw invalid('the value is missing');
  return value as JsonValue;
}

function requireScope(kind: 'state' | 'cache', context: PlatformCallContext): StateScope {
  const { permissions, plugin } = context.request;
  if (permissions.platform?.[kind] === false) {
    throw new PlatformError(
      'PERMISSION_DENIED',
      `The plugin's manifest sets permissions.platform.${kind} to false, so ctx.${kind} cannot be used.`,
      { details: { permission: `permissions.platform.${kind}` } },
    );
  }
  return { namespace: `plugin:${plugin.id}:${kind}`, ...callScope(context) };
}
