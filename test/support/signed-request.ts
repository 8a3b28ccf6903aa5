import {
  type DeclaredAuth,
  type Draft,
  type SignatureVerdict,
  TextCache,
  type VerificationKey,
  type VerificationKeys,
  verificationKey,
  verificationOf,
} from '../../src/webhooks/schemes/index.ts';

/** A POST of JSON to a URL of the tests, unless told otherwise. */
export function signedRequest(given: Partial<Draft> = {}): Draft {
  const { url = 'https://hooks.example.com/webhooks/shop/created', body = Buffer.from('{}') } = given;
  const { pathname, search } = new URL(url);
  return {
    ...{ method: 'POST', target: pathname + search, rawHeaders: [], source: '192.0.2.1' },
    ...{ nowMs: Date.UTC(2030, 0, 1), id: 'msg_1' },
    fields: () => JSON.parse(body.toString()) as unknown,
    ...given,
    url,
    body,
  };
}

/** Keys with a current secret, and a previous one in its grace period if told. */
export function keysOf(current: string, previous?: string): VerificationKeys {
  return {
    current: verificationKey(current),
    previous: previous === undefined ? null : verificationKey(previous),
    previousExpiresAt: null,
    lapsed: null,
    namespaceInUrl: false,
  };
}

/** Verifies headers and body by a declaration that needs neither URL nor network. */
export function verifyDeclared(
  auth: DeclaredAuth,
  rawHeaders: readonly string[],
  body: Buffer,
  keys: VerificationKeys | undefined,
  nowMs: number,
): SignatureVerdict {
  const request = signedRequest({ rawHeaders, body, nowMs });
  return verificationOf(auth).verify(request, keys, nowMs, new TextCache()) as SignatureVerdict;
}

/** Headers that a sender with this secret would send. */
export function signDeclared(
  auth: DeclaredAuth,
  key: VerificationKey,
  body: Buffer,
  at: { nowMs: number; id: string },
): Record<string, string> {
  const [scheme] = verificationOf(auth).schemes;
  return (scheme.sign!(key, signedRequest({ body, ...at })) as { headers: Record<string, string> }).headers;
}
