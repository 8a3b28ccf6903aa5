import { createHash } from 'node:crypto';

export interface RedisScript {
  text: string;
  sha: string;
}

/** Returns a Lua script with the digest by which the server caches it. */
export function redisScript(text: string): RedisScript {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
