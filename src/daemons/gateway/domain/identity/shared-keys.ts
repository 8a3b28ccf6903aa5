import { PlatformError } from '../../../../kit/errors/errors.ts';
import { deriveKey, type KeyMaterial, masterKeyId } from '../../../../kit/security/keys.ts';
import type { KeyFingerprints, KeyValueStore, MemberRecord } from '../../../../store/ports/index.ts';
import { PLATFORM_SCOPE } from './static-tokens.ts';

/** Entry of the platform cache with the fingerprint of the master key that encrypts the store's secrets. */
const MASTER_KEY_ENTRY = 'master-key';
const FINGERPRINT_CHARS = 8;

/** Returns fingerprints of the keys, so that nodes can compare their keys. */
export function keyFingerprints({
  jwtSecret,
  previousJwtSecret,
  internalSecret,
  masterKey,
}: KeyMaterial): KeyFingerprints {
  const printOf = (secret: string | null): string | null =>
    secret === null ? null : deriveKey(secret, 'fingerprint').slice(0, FINGERPRINT_CHARS);
  return {
    master: masterKeyId(masterKey),
    jwt: printOf(jwtSecret),
    previousJwt: printOf(previousJwtSecret),
    internal: printOf(internalSecret)!,
  };
}

/**
 * Returns the environment variables whose keys differ between two nodes. JWT secrets are allowed to differ if each node
 * accepts the tokens of the other node.
 */
export function differingKeys(own: KeyFingerprints, other: KeyFingerprints): string[] {
  const accepts = (by: KeyFingerprints, of: KeyFingerprints): boolean =>
    by.jwt === of.jwt || (of.jwt !== null && by.previousJwt === of.jwt);
  return [
    ...(own.master === other.master ? [] : ['SVC_MASTER_KEY']),
    ...(accepts(own, other) && accepts(other, own) ? [] : ['GATEWAY_JWT_SECRET']),
    ...(own.internal === other.internal ? [] : ['GATEWAY_INTERNAL_SECRET']),
  ];
}

/**
 * Throws CONFLICT if the keys differ from the keys of another live node. Throws CONFLICT if the store's secrets are
 * encrypted with a different master key. @spec docs/decisions/0218
 */
export async function requireSharedKeys(
  own: KeyFingerprints,
  { cache, others }: { cache: KeyValueStore; others: readonly MemberRecord[] },
): Promise<void> {
  for (const { keys, instance } of others) {
    const different = keys ? differingKeys(own, keys) : [];
    if (different.length > 0) throw refused(different, `those of the running node "${instance}"`);
  }
  await cache.setIfAbsent(PLATFORM_SCOPE, MASTER_KEY_ENTRY, own.master);
  const stored = await cache.get(PLATFORM_SCOPE, MASTER_KEY_ENTRY);
  if (stored && stored.value !== own.master)
    throw refused(['SVC_MASTER_KEY'], `the one that encrypted the store's secrets (${stored.value})`);
}

/** Stores the id of the master key that encrypts the store's secrets after a rotation. */
export function noteMasterKey(cache: KeyValueStore, id: string): Promise<void> {
  return cache.set(PLATFORM_SCOPE, MASTER_KEY_ENTRY, id);
}

function refused(variables: readonly string[], from: string): PlatformError {
  const names = variables.join(' and ');
  return new PlatformError(
    'CONFLICT',
    `This node's ${names} ${variables.length === 1 ? 'differs' : 'differ'} from ${from}. Set the same value on all nodes, in the environment or by ${variables.map((name) => `${name}_FILE`).join(' and ')}, and start again.`,
    { details: { variables: [...variables] } },
  );
}
