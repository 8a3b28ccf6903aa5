import { LIMITS, type StoredObject } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { type AdapterWatch, watched } from './adapter-watch.ts';
import { invalid, optionsArgument, textArgument, wholeArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { eventFields } from './event-fields.ts';

/** Identifies the caller and the namespace of the objects, which is `plugin:<id>`. */
export interface ObjectScope extends CallScope {
  namespace: string;
}

/**
 * State service methods that `ctx.storage` uses. The typed HTTP client of the state service implements these methods.
 * `data` is encoded as base64.
 */
export interface ObjectAccess {
  read(scope: ObjectScope, key: string): Promise<{ bytes: number; data: string } | undefined>;
  write(scope: ObjectScope, key: string, data: string): Promise<{ bytes: number }>;
  delete(scope: ObjectScope, key: string): Promise<boolean>;
  stat(scope: ObjectScope, key: string): Promise<StoredObject | undefined>;
  list(
    scope: ObjectScope,
    options: { prefix: string; cursor?: string; limit: number },
  ): Promise<{ items: StoredObject[]; nextCursor: string | null }>;
}

const KEY_CHARS = 512;
const CURSOR_CHARS = 1024;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const MAX_CHARS = Math.ceil(LIMITS.storageObjectBytes / 3) * 4;

/**
 * Creates `ctx.storage` for the objects of one plugin and tenant. Its methods throw PERMISSION_DENIED if the manifest
 * does not request the service. The methods also throw errors of the state service.
 */
export function createStorageService(
  objects: ObjectAccess,
  analytics: Analytics,
  watch: AdapterWatch,
): PlatformService {
  function scopeOf(context: PlatformCallContext): ObjectScope {
    requirePlatform(context.request, 'storage');
    return { ...callScope(context), namespace: `plugin:${context.request.plugin.id}` };
  }
  const call = <Value>(method: string, run: () => Promise<Value>) => watched(watch, 'storage', method, run);
  const keyOf = (key: unknown): string => textArgument(key, 'the key', KEY_CHARS);

  /**
   * Emits the analytics event of a storage call. @spec Standard analytics types: storage.read.completed,
   * storage.write.completed
   */
  function tell(
    way: 'read' | 'write',
    { request }: PlatformCallContext,
    bytes: number,
    durationMs: number,
  ): void {
    const [bytesRead, bytesWritten] = way === 'read' ? [bytes, 0] : [0, bytes];
    analytics.trackOften(`storage.${way}.completed`, {
      ...eventFields(request),
      payload: { bytesRead, bytesWritten, durationMs },
    });
  }

  return {
    async read(context, [key]) {
      const scope = scopeOf(context);
      const { value: found, durationMs } = await call('read', () => objects.read(scope, keyOf(key)));
      tell('read', context, found?.bytes ?? 0, durationMs);
      return found ? { data: found.data } : {};
    },
    async write(context, [key, data]) {
      const scope = scopeOf(context);
      const text = base64Argument(data);
      const { value, durationMs } = await call('write', () => objects.write(scope, keyOf(key), text));
      tell('write', context, value.bytes, durationMs);
    },
    async delete(context, [key]) {
      const scope = scopeOf(context);
      return (await call('delete', () => objects.delete(scope, keyOf(key)))).value;
    },
    async stat(context, [key]) {
      const scope = scopeOf(context);
      const { value: found } = await call('stat', () => objects.stat(scope, keyOf(key)));
      return found ? { found } : {};
    },
    async list(context, [options]) {
      const scope = scopeOf(context);
      const { prefix, cursor, limit } = optionsArgument(options);
      const asked = {
        prefix: prefix === undefined || prefix === '' ? '' : textArgument(prefix, 'prefix', KEY_CHARS),
        limit: wholeArgument(limit, 'limit', 1, 1000) ?? 100,
        ...(cursor === undefined || cursor === null
          ? {}
          : { cursor: textArgument(cursor, 'cursor', CURSOR_CHARS) }),
      };
      return (await call('list', () => objects.list(scope, asked))).value;
    },
  };
}

function base64Argument(data: unknown): string {
  if (typeof data !== 'string' || !BASE64.test(data)) throw invalid('the data must be base64');
  if (data.length <= MAX_CHARS) return data;
  const maxBytes = LIMITS.storageObjectBytes;
  throw new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `An object may have at most ${maxBytes} bytes; split it over several keys.`,
    {
      details: { maxBytes },
    },
  );
}
