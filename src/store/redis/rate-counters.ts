import {
  type PermitGrant,
  type PermitRequest,
  RATE_SLICES,
  type RateCounters,
  sliceMsOf,
} from '../ports/index.ts';
import type { RedisConnection } from './connection.ts';
import { redisScript } from './script.ts';

/**
 * Takes permits of a rate limit. Uses the clock of the Redis server. The Redis hash of a rate limit contains the number
 * of calls per time slice.
 */
const TAKE = redisScript(`
local limit, sliceMs, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local slice = math.floor(now / sliceMs)
local total, oldest, newest = 0, nil, nil
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local at, calls = tonumber(fields[i]), tonumber(fields[i + 1])
  if at < slice - ${RATE_SLICES} or at > slice + 1 or calls <= 0 then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    total = total + calls
    if not oldest or at < oldest then oldest = at end
    if not newest or at > newest then newest = at end
  end
end
local granted = math.max(math.min(want, limit - total), 0)
if granted > 0 then
  redis.call('HINCRBY', KEYS[1], string.format('%.0f', slice), granted)
  redis.call('PEXPIRE', KEYS[1], sliceMs * ${RATE_SLICES + 2})
  oldest = oldest or slice
elseif want < 0 and newest then
  redis.call('HINCRBY', KEYS[1], string.format('%.0f', newest), -1)
end
local freesIn = ((oldest or slice) + ${RATE_SLICES + 1}) * sliceMs - now
return { granted, math.max(limit - total - granted, 0), freesIn }`);

/** Rate-limit counters in Redis, which all processes that use this server share. */
export class RedisRateCounters implements RateCounters {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async take(key: string, { limit, windowMs, calls }: PermitRequest): Promise<PermitGrant> {
    const reply = await this.#redis.run(TAKE, [nameOf(key)], [limit, sliceMsOf(windowMs), calls]);
    const [granted, left, freesInMs] = reply as [number, number, number];
    return { granted, left, freesInMs };
  }

  async giveBack(key: string, windowMs: number): Promise<void> {
    await this.#redis.run(TAKE, [nameOf(key)], [0, sliceMsOf(windowMs), -1]);
  }

  close(): Promise<void> {
    return this.#redis.close();
  }
}

function nameOf(key: string): string {
  return `svc:rate:${key}`;
}
