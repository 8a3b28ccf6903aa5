import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { PlatformError } from '../../kit/errors/errors.ts';
import { minutes, seconds } from '../../kit/time/duration.ts';
import { fetchBounded } from './bounded-fetch.ts';

const KEYS_TTL_MS = minutes(10);
/** Time between two fetches because of an unknown key id, which any client can invent. */
const COOLDOWN_MS = seconds(30);
/** Time after a failure in which the keys are not fetched again. */
const FAILURE_TTL_MS = seconds(5);
const MAX_SETS = 256;

interface KeySet {
  keys: Promise<JWTVerifyGetKey>;
  fetchedAt: number;
  untilMs: number;
}

/** Caches the public keys of issuers. Concurrent requests share one fetch. */
export class KeySets {
  readonly #sets = new Map<string, KeySet>();

  /**
   * Returns the function that finds the key of a token. Its keys are fetched again for an unknown key id. Throws
   * SERVICE_UNAVAILABLE if there are no keys and they cannot be fetched.
   */
  keyFinder(url: string, nowMs: number): JWTVerifyGetKey {
    return async (header, token) => {
      const set = this.#current(url, nowMs);
      try {
        return await (await set.keys)(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || nowMs - set.fetchedAt < COOLDOWN_MS) throw error;
        return (await this.#fetched(url, nowMs).keys)(header, token);
      }
    };
  }

  #current(url: string, nowMs: number): KeySet {
    const known = this.#sets.get(url);
    return known && nowMs < known.untilMs ? known : this.#fetched(url, nowMs);
  }

  #fetched(url: string, nowMs: number): KeySet {
    if (!this.#sets.has(url) && this.#sets.size >= MAX_SETS)
      this.#sets.delete(this.#sets.keys().next().value!);
    const former = this.#sets.get(url);
    const set: KeySet = { keys: fetchKeys(url), fetchedAt: nowMs, untilMs: nowMs + KEYS_TTL_MS };
    this.#sets.set(url, set);
    set.keys.catch(() => {
      set.untilMs = nowMs + FAILURE_TTL_MS;
      // Any client can cause this fetch with an unknown key id. Its failure must not remove valid keys.
      if (former && nowMs < former.untilMs && this.#sets.get(url) === set)
        this.#sets.set(url, { ...former, fetchedAt: nowMs });
    });
    return set;
  }
}

async function fetchKeys(url: string): Promise<JWTVerifyGetKey> {
  const text = await fetchBounded(url);
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
  } catch (cause) {
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'The keys of the sender cannot be read now; send the delivery again later.',
      { cause },
    );
  }
}
