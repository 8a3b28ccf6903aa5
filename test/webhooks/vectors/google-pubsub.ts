import { OAuth2Client } from 'google-auth-library';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { googlePubsub } from '../../../src/webhooks/providers/google-pubsub.ts';
import type { Vectors } from './vector.ts';

const AUDIENCE = 'Jt7wq0cVxNf3PzBd5kYh2sRm9aEuL1oG';
const ISSUER = 'https://accounts.google.com';
const KEY_ID = '7d680d8c70d44e947133cbd499ebc1a61c3d5abc';
const ONE_HOUR_SECONDS = 3600;

let keyPair: ReturnType<typeof generateKeyPair> | undefined;

/** A token with the documented claims. Only Google has its key, so another key stands for it. */
export const vectors: Vectors = async () => {
  const { headers, body } = googlePubsub.sample;
  // Files that run in one process share the keys that the platform has cached for this id.
  keyPair ??= generateKeyPair('RS256');
  const { publicKey, privateKey } = await keyPair;
  const pems = { [KEY_ID]: await exportSPKI(publicKey) };
  const key = { ...(await exportJWK(publicKey)), kid: KEY_ID, alg: 'RS256', use: 'sig' };
  // The library checks the lifetime of a token with its own clock.
  const at = Date.now();
  const token = await new SignJWT({
    azp: '113774264463038321964',
    email: 'gae-gcp@appspot.gserviceaccount.com',
    email_verified: true,
  })
    .setProtectedHeader({ alg: 'RS256', kid: KEY_ID, typ: 'JWT' })
    .setSubject('113774264463038321964')
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt(Math.floor(at / 1000))
    .setExpirationTime(Math.floor(at / 1000) + ONE_HOUR_SECONDS)
    .sign(privateKey);
  await new OAuth2Client().verifySignedJwtWithCertsAsync(token, pems, AUDIENCE, [ISSUER]);
  return [
    {
      provider: 'google-pubsub',
      source:
        'https://docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions (claims), accepted by ' +
        'google-auth-library@11.3.4 verifySignedJwtWithCertsAsync',
      secret: AUDIENCE,
      at,
      request: { headers: { ...headers, authorization: `Bearer ${token}` }, body },
      fetches: { 'https://www.googleapis.com/oauth2/v3/certs': JSON.stringify({ keys: [key] }) },
    },
  ];
};
