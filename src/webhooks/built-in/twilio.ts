import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { parse, stringify } from 'node:querystring';
import type { BuiltInVerifier } from '../schemes/built-in.ts';
import { HeaderPlace } from '../schemes/place.ts';
import type { SignedRequest } from '../schemes/signed-request.ts';
import { sortedForm } from '../schemes/sorted-form.ts';

const SIGNATURE = new HeaderPlace('x-twilio-signature');
const BODY_HASH = 'bodySHA256';

/**
 * Verifies a delivery of Twilio: HMAC-SHA1 of the URL and the sorted form. For a body of another type, the URL contains
 * the SHA-256 of the body as `bodySHA256`. https://www.twilio.com/docs/usage/security#validating-requests
 */
export const verifyTwilio: BuiltInVerifier = async (request, secret) => {
  const signature = SIGNATURE.read(request);
  if (signature.text === undefined) return signature.fault;
  const hash = bodyHashOf(request.url);
  if (hash !== undefined && !isEqual(hash, createHash('sha256').update(request.body).digest('hex')))
    return 'body_digest';
  const form = hash === undefined ? sortedForm(request) : '';
  // The signature would not cover such a body.
  if (form === undefined) return 'body_not_form';
  let found = false;
  for (const url of urlsOf(request)) {
    const expected = createHmac('sha1', secret)
      .update(url + form)
      .digest('base64');
    found = isEqual(signature.text, expected) || found;
  }
  return found;
};

function bodyHashOf(url: string): string | undefined {
  return new URL(url).searchParams.get(BODY_HASH) ?? undefined;
}

/**
 * Returns the URLs that Twilio may have signed: as received and as a URL parser normalizes it, with and without the port,
 * and with the query that Node's `querystring` writes. Twilio's own library accepts the same ones.
 */
function urlsOf({ url }: SignedRequest): Set<string> {
  const normalized = new URL(url).href;
  const portless = withoutPort(normalized);
  const ported = withPort(normalized);
  return new Set([
    withoutPort(url),
    withPort(url),
    portless,
    ported,
    withLegacyQuery(portless),
    withLegacyQuery(ported),
  ]);
}

const AUTHORITY = /^(https?:\/\/(?:[^/?#@]*@)?(?:\[[^\]]*\]|[^/?#:]*))(:[0-9]*)?/i;

function withoutPort(url: string): string {
  return url.replace(AUTHORITY, '$1');
}

function withPort(url: string): string {
  const port = /^https:/i.test(url) ? ':443' : ':80';
  return url.replace(AUTHORITY, (_, host: string, given?: string) => host + (given || port));
}

function withLegacyQuery(url: string): string {
  const mark = url.indexOf('?');
  if (mark === -1 || mark === url.length - 1) return url;
  return `${url.slice(0, mark)}?${stringify(parse(url.slice(mark + 1)))}`;
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
