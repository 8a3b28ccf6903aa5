import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../kit/clock.ts';
import { minutes, seconds } from '../../kit/duration.ts';
import { messageOf, PlatformError } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';

/** Age at which keys are refreshed in the background, so that calls do not wait. */
const REFRESH_MS = minutes(9);
/** Age above which keys are refreshed before use: some may have been withdrawn during a quiet hour. */
const FRESH_MS = minutes(10);
/** Age above which keys of an unreachable issuer are no longer used. */
const STALE_MS = minutes(70);
/** Minimum time between refreshes caused by unknown key ids. */
const UNKNOWN_KEY_COOLDOWN_MS = seconds(30);
const FAILURE_COOLDOWN_MS = seconds(5);
const TIMEOUT_MS = seconds(5);
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;

export interface IssuerKeysDeps {
  jwksUri: string;
  clock: Clock;
  logger: Logger;
}

interface KeySet {
  find: JWTVerifyGetKey;
  fetchedAt: number;
}

/**
 * An issuer's published keys for `jwtVerify`. Requests to the issuer are serialized, rate-limited and bounded
 * in size, regardless of callers. Throws UPSTREAM_UNAVAILABLE while no keys are known.
 */
export async function createIssuerKeys({ jwksUri, clock, logger }: IssuerKeysDeps): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, errors } = await import('jose');
  let known: KeySet | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Whether the latest request failed. */
  let failing = false;
  let asking: Promise<void> | undefined;

  async function fetchKeys(): Promise<void> {
    askedAt = clock.monotonic();
    try {
      known = { find: createLocalJWKSet(await readKeySet(jwksUri)), fetchedAt: askedAt };
      failing = false;
    } catch (error) {
      failing = true;
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
  function ask(): Promise<void> {
    asking ??= fetchKeys().finally(() => {
      asking = undefined;
    });
    return asking;
  }
  const cooled = (ms: number): boolean => clock.monotonic() - askedAt >= ms;

  async function current(): Promise<KeySet> {
    const ageMs = known ? clock.monotonic() - known.fetchedAt : Number.POSITIVE_INFINITY;
    if (ageMs >= STALE_MS) {
      if (asking || cooled(FAILURE_COOLDOWN_MS)) await ask();
      if (!known || clock.monotonic() - known.fetchedAt >= STALE_MS) throw unavailable();
    } else if (ageMs >= FRESH_MS && !failing) await ask();
    else if (ageMs >= REFRESH_MS && cooled(FAILURE_COOLDOWN_MS)) void ask();
    return known!;
  }

  return async (header, token) => {
    const set = await current();
    try {
      return await set.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // The issuer may have rotated its keys.
      if (asking || cooled(UNKNOWN_KEY_COOLDOWN_MS)) await ask();
      if (known === set || !known) throw error;
      return known.find(header, token);
    }
  };
}

async function readKeySet(jwksUri: string): Promise<JSONWebKeySet> {
  const response = await fetch(jwksUri, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  const { keys } = JSON.parse(await boundedText(response)) as Partial<JSONWebKeySet>;
  if (!Array.isArray(keys)) throw new Error('its response is not a key set');
  if (keys.length > MAX_KEYS) throw new Error(`it has more than ${MAX_KEYS} keys`);
  return { keys };
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error(`its answer is larger than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function unavailable(): PlatformError {
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    "The keys of this token's issuer are unavailable; try again later.",
    { headers: { 'retry-after': String(FAILURE_COOLDOWN_MS / 1000) } },
  );
}
