import type { Clock } from '../../kit/time/clock.ts';
import { expiryOf, quotaExceeded, sumOf } from '../key-value-rules.ts';
import {
  type EntryQuota,
  type JsonValue,
  type KeyValueEntry,
  type KeyValueStore,
  requireStorableKey,
} from '../ports/index.ts';
import type { RedisArgument, RedisConnection } from './connection.ts';
import { DELETE, INCREMENT, PUT, SCAN, SWEEP } from './key-value-scripts.ts';
import type { RedisScript } from './script.ts';

/**
 * Byte that sorts after every byte of UTF-8 text. A prefix followed by this byte sorts after all keys with the prefix.
 */
const AFTER_ALL = Buffer.from([0xff]);

/**
 * Key-value store in Redis or Valkey for the plugins' caches. The persistence settings of the server decide whether
 * writes survive a restart.
 */
export class RedisKeyValue implements KeyValueStore {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  async get(scope: string, key: string): Promise<KeyValueEntry | undefined> {
    requireStorableKey(scope, key);
    const stored = await this.#redis.readField(valuesOf(scope), key);
    if (stored === null) return undefined;
    const entry = entryOf(key, stored);
    return entry.expiresAt === null || entry.expiresAt > this.#clock.now() ? entry : undefined;
  }

  async set(scope: string, key: string, value: JsonValue, ttlMs?: number, quota?: EntryQuota): Promise<void> {
    await this.#write(PUT, { scope, key, value, ttlMs, quota });
  }

  async setIfAbsent(
    scope: string,
    key: string,
    value: JsonValue,
    ttlMs?: number,
    quota?: EntryQuota,
  ): Promise<boolean> {
    const [outcome] = await this.#write(PUT, { scope, key, value, ttlMs, quota }, '1');
    return outcome === 'written';
  }

  async delete(scope: string, key: string): Promise<boolean> {
    requireStorableKey(scope, key);
    return (await this.#run(DELETE, scope, [key])) === 1;
  }

  async increment(
    scope: string,
    key: string,
    { by, windowMs, quota }: { by: number; windowMs?: number; quota?: EntryQuota },
  ): Promise<{ value: number; expiresAt: number | null }> {
    const write = { scope, key, value: by, ttlMs: windowMs, quota };
    const [outcome, value, expiry] = await this.#write(INCREMENT, write);
    const found: unknown = JSON.parse(value as string);
    if (outcome === 'unsummable') return { value: sumOf(key, found, by), expiresAt: null };
    return { value: found as number, expiresAt: expiry === '' ? null : Number(expiry) };
  }

  async scan(
    scope: string,
    { prefix, after, limit }: { prefix: string; after?: string; limit: number },
  ): Promise<KeyValueEntry[]> {
    requireStorableKey(scope, prefix, after ?? '');
    const isBehind = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) >= 0;
    const from = isBehind ? `(${after}` : `[${prefix}`;
    const end = Buffer.concat([Buffer.from(`(${prefix}`), AFTER_ALL]);
    const found = (await this.#run(SCAN, scope, [from, end, limit])) as string[];
    return Array.from({ length: found.length / 2 }, (_, i) => entryOf(found[2 * i]!, found[2 * i + 1]!));
  }

  async sweep(limit: number): Promise<number> {
    return (await this.#run(SWEEP, '', [limit])) as number;
  }

  async #write(
    script: RedisScript,
    { scope, key, value, ttlMs, quota }: Write,
    keepsLive = '',
  ): Promise<[outcome: string, ...facts: Array<string | number>]> {
    requireStorableKey(scope, key);
    const expiresAt = expiryOf(this.#clock, ttlMs);
    const reply = (await this.#run(script, scope, [
      key,
      JSON.stringify(value),
      expiresAt ?? '',
      quota?.maxBytes ?? '',
      quota?.maxKeys ?? '',
      keepsLive,
    ])) as [string, ...Array<string | number>];
    const [outcome, bytes, keys] = reply;
    if (outcome === 'quota' && quota)
      throw quotaExceeded(key, { bytes: bytes as number, keys: keys as number }, quota);
    return reply;
  }

  #run(script: RedisScript, scope: string, values: readonly RedisArgument[]): Promise<unknown> {
    const keys = [valuesOf(scope), `svc:cache:keys:${scope}`, 'svc:cache:expiry', 'svc:cache:bytes'];
    return this.#redis.run(script, keys, [scope, this.#clock.now(), ...values]);
  }
}

interface Write {
  scope: string;
  key: string;
  value: JsonValue;
  ttlMs: number | undefined;
  quota: EntryQuota | undefined;
}

function valuesOf(scope: string): string {
  return `svc:cache:values:${scope}`;
}

function entryOf(key: string, stored: string): KeyValueEntry {
  const bar = stored.indexOf('|');
  return {
    key,
    value: JSON.parse(stored.slice(bar + 1)),
    expiresAt: bar === 0 ? null : Number(stored.slice(0, bar)),
  };
}
