import type { createRemoteJWKSet, JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { minutes, seconds } from '../../kit/time/duration.ts';
import { boundedText } from './bounded-fetch.ts';

/** Age at which keys are fetched again in the background, so that calls do not wait for the issuer. */
const REFRESH_MS = minutes(9);
/**
 * Age after which keys are used only while the issuer cannot be reached, because the issuer might have withdrawn some
 * keys.
 */
const MAX_AGE_MS = minutes(10);
/** Age of keys after which the keys are never used, even while the issuer cannot be reached. */
const MAX_STALE_MS = minutes(70);
/** Minimum time between two fetches that are caused by tokens with an unknown key id. */
const UNKNOWN_KEY_COOLDOWN_MS = seconds(30);
const FAILURE_COOLDOWN_MS = seconds(5);
const TIMEOUT_MS = seconds(5);
const MAX_KEYS = 100;

export interface IssuerKeysDeps {
  jwksUri: string;
  clock: Clock;
  logger: Logger;
}

type RemoteKeySet = ReturnType<typeof createRemoteJWKSet>;

/**
 * Returns the function with which `jwtVerify` finds an issuer's keys. `KeyRefresh` controls the fetches, so that cached
 * keys stay usable while the issuer is down. The returned function throws UPSTREAM_UNAVAILABLE without usable keys.
 */
export async function createIssuerKeys(deps: IssuerKeysDeps): Promise<JWTVerifyGetKey> {
  const { createRemoteJWKSet, customFetch, errors } = await import('jose');
  const keys = createRemoteJWKSet(new URL(deps.jwksUri), {
    cacheMaxAge: Number.POSITIVE_INFINITY,
    cooldownDuration: Number.POSITIVE_INFINITY,
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: fetchKeySet,
  });
  const refresh = new KeyRefresh(keys, deps);
  return async (header, token) => {
    await refresh.beforeUse();
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await refresh.forUnknownKey())) throw error;
      return keys(header, token);
    }
  };
}

/** Limits fetches of the keys to one at a time. Also limits how often unknown key ids cause a fetch. */
class KeyRefresh {
  readonly #keys: RemoteKeySet;
  readonly #deps: IssuerKeysDeps;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #fetching: Promise<void> | undefined;

  constructor(keys: RemoteKeySet, deps: IssuerKeysDeps) {
    this.#keys = keys;
    this.#deps = deps;
  }

  /**
   * Fetches keys that are missing or too old, unless the last fetch has failed recently. Throws UPSTREAM_UNAVAILABLE if
   * there are no usable keys afterwards.
   */
  async beforeUse(): Promise<void> {
    const ageMs = this.#ageMs();
    if (ageMs >= MAX_STALE_MS) {
      if (this.#fetching || this.#hasCooled(FAILURE_COOLDOWN_MS)) await this.#fetch();
      if (this.#ageMs() >= MAX_STALE_MS) throw unavailable();
    } else if (ageMs >= MAX_AGE_MS && !this.#hasFailed) await this.#fetch();
    else if (ageMs >= REFRESH_MS && this.#hasCooled(FAILURE_COOLDOWN_MS)) void this.#fetch();
  }

  /**
   * Fetches the keys again after an unknown key id, unless the last attempt is recent. Returns whether the keys were
   * fetched.
   */
  async forUnknownKey(): Promise<boolean> {
    if (!this.#fetching && !this.#hasCooled(UNKNOWN_KEY_COOLDOWN_MS)) return false;
    await this.#fetch();
    return !this.#hasFailed;
  }

  #ageMs(): number {
    return this.#deps.clock.monotonic() - this.#fetchedAt;
  }

  #hasCooled(ms: number): boolean {
    return this.#deps.clock.monotonic() - this.#triedAt >= ms;
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#reload().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #reload(): Promise<void> {
    const { jwksUri, clock, logger } = this.#deps;
    this.#triedAt = clock.monotonic();
    try {
      await this.#keys.reload();
      this.#fetchedAt = this.#triedAt;
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      logger.diagnostic({
        domain: 'auth',
        event: 'auth.issuer_keys_unavailable',
        level: 'warn',
        reasonCode: 'ISSUER_KEYS_UNAVAILABLE',
        message: `The keys at ${jwksUri} cannot be fetched: ${messageOf(error)}`,
        outcome: 'degraded',
        error,
      });
    }
  }
}

/** Rejects redirects and limits the response size, because jose only limits the time. */
async function fetchKeySet(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'error' });
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  const { keys } = JSON.parse(await boundedText(response)) as Partial<JSONWebKeySet>;
  if (!Array.isArray(keys)) throw new Error('its response is not a key set');
  if (keys.length > MAX_KEYS) throw new Error(`it has more than ${MAX_KEYS} keys`);
  return Response.json({ keys });
}

function unavailable(): PlatformError {
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    "The keys of this token's issuer are unavailable; try again later.",
    { headers: { 'retry-after': String(FAILURE_COOLDOWN_MS / 1000) } },
  );
}
