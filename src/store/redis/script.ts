import { createHash } from 'node:crypto';

export interface RedisScript {
  text: string;
  sha: string;
}

/** Returns the Lua script with its SHA-1 digest. The server caches scripts by this digest. */
export function redisScript(text: string): RedisScript {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
