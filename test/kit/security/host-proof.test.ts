import { createHmac, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerChallenge, createChallenge, createHostKeys } from '../../../src/kit/security/host-proof.ts';

/** Computed by hand from docs/decisions/0023, as an agent in another language would. */
function proofByThePage(
  challenge: { nonce: string; publicKey: string },
  keys: typeof HOST,
  hostId: string,
): string {
  const x = Buffer.from(challenge.publicKey, 'base64').toString('base64url');
  const secret = diffieHellman({
    privateKey: createPrivateKey({
      key: Buffer.from(keys.privateKey, 'base64'),
      format: 'der',
      type: 'pkcs8',
    }),
    publicKey: createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' }),
  });
  const nonce = Buffer.from(challenge.nonce, 'base64');
  const key = Buffer.from(hkdfSync('sha256', secret, nonce, 'svc host hello v1', 32));
  const said = ['svc host hello v1', hostId, challenge.nonce, challenge.publicKey, keys.publicKey];
  return createHmac('sha256', key).update(said.join('\n')).digest('base64');
}

const HOST = createHostKeys();

test('the proof is what the page says it is', () => {
  const challenge = createChallenge();
  const proof = answerChallenge(challenge, HOST, 'host_1');
  expect(proof).toBe(proofByThePage(challenge, HOST, 'host_1'));
  expect(challenge.accepts(proof, 'host_1', HOST.publicKey)).toBe(true);
});

test('a proof counts for its host, its key and its challenge alone', () => {
  const challenge = createChallenge();
  const proof = answerChallenge(challenge, HOST, 'host_1');
  expect(challenge.accepts(proof, 'host_2', HOST.publicKey)).toBe(false);
  expect(challenge.accepts(proof, 'host_1', createHostKeys().publicKey)).toBe(false);
  expect(createChallenge().accepts(proof, 'host_1', HOST.publicKey)).toBe(false);
  expect(challenge.accepts(proof, 'host_1', Buffer.alloc(32).toString('base64'))).toBe(false);
  for (const bad of ['', 'AAAA', `AAAA${proof}`])
    expect(challenge.accepts(bad, 'host_1', HOST.publicKey)).toBe(false);
});
