import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../kit/clock.ts';
import { minutes, seconds } from '../../kit/duration.ts';
import { messageOf, PlatformError } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';

/** From then on the keys are fetched anew, while the known ones serve on: where there are calls, none waits. */
const REFRESH_MS = minutes(9);
/** So old they serve only while the issuer cannot be asked: after a quiet hour some of them may have been withdrawn. */
const FRESH_MS = minutes(10);
/** An issuer that cannot be asked for so long has its keys forgotten: some of them may have been withdrawn. */
const STALE_MS = minutes(70);
/** A token that names an unknown key is worth a question, a flood of them is not. */
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
 * The published keys of an issuer, as `jwtVerify` asks for them. Whatever callers send, the issuer is asked once at a
 * time, seldom, and for a bounded answer. Throws UPSTREAM_UNAVAILABLE while no keys are known.
 */
export async function createIssuerKeys({ jwksUri, clock, logger }: IssuerKeysDeps): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, errors } = await import('jose');
  let known: KeySet | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Whether the latest question went without an answer. */
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
      // The issuer may have begun to use a new one.
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
  if (!response.ok) throw new Error(`it answers ${response.status}`);
  const { keys } = JSON.parse(await boundedText(response)) as Partial<JSONWebKeySet>;
  if (!Array.isArray(keys)) throw new Error('it answers no key set');
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
    'The issuer of this token cannot be asked for its keys; try again later.',
    { headers: { 'retry-after': String(FAILURE_COOLDOWN_MS / 1000) } },
  );
}
