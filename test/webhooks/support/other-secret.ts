import { generateKeyPairSync } from 'node:crypto';
import type { SignatureAuth } from '../../../src/contracts/index.ts';
import type { ProviderAuth } from '../../../src/webhooks/providers/index.ts';

/**
 * Returns a well-formed secret that is not the given one. Undefined if the secret does not prove the sender, because keys
 * of the sender's servers do.
 */
export function otherSecret(auth: ProviderAuth, secret: string): string | undefined {
  if (auth.type === 'jwt' && auth.jwksUrl !== undefined && auth.audience !== 'secret') return undefined;
  if (auth.type === 'built-in' && auth.verifier === 'aws-sns') return undefined;
  if (auth.type !== 'signature') return `${secret}x`;
  if (auth.key !== undefined) return otherKey(auth);
  const { encoding, prefix } = auth.secret;
  if (encoding === 'text') return `${secret}x`;
  const bare = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret;
  const bytes = Buffer.from(bare, encoding);
  bytes[0]! ^= 1;
  return (secret.startsWith(prefix) ? prefix : '') + bytes.toString(encoding);
}

function otherKey({ algorithm, key }: SignatureAuth): string {
  const { publicKey } =
    algorithm === 'ed25519'
      ? generateKeyPairSync('ed25519')
      : algorithm.startsWith('rsa')
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  if (key === 'pem') return publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  if (key === 'spki-base64') return spki.toString('base64');
  return spki.subarray(-32).toString(key === 'raw-hex' ? 'hex' : 'base64');
}
