import type { CustomFetch } from 'openid-client';
import { isTamperProof } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { OutgoingClient, OutgoingReply } from '../../../../outgoing/outgoing-client.ts';
import { causesOf, ProviderError } from './provider-error.ts';

/** Time for one request. A refresh lease lasts longer, so that no second refresh starts meanwhile. */
export const REQUEST_TIMEOUT_MS = seconds(20);
const MAX_REPLY_BYTES = 256 * 1024;

export interface ProviderFetchDeps {
  outgoing: Pick<OutgoingClient, 'send'>;
  /** Whether providers may have private addresses. */
  mayBePrivate: boolean;
}

/**
 * Creates the fetch function of the OAuth client. Users choose the URLs, so that the address guard checks each request.
 * Redirects are refused, because a redirect would send the client secret to another server.
 */
export function providerFetch(
  { outgoing, mayBePrivate }: ProviderFetchDeps,
  convert: (url: string, reply: OutgoingReply) => Response = plainResponse,
): CustomFetch {
  return async (url, init) => {
    if (!isTamperProof(url))
      throw new ProviderError('not_https', `${hostOf(url)} is not https.`, { isFinal: true });
    const reply = await outgoing
      .send({
        url,
        method: init.method,
        headers: [...new Headers(init.headers)].flat(),
        body: Buffer.from(String(init.body ?? '')),
        timeoutMs: REQUEST_TIMEOUT_MS,
        mayBePrivate,
        maxReplyBytes: MAX_REPLY_BYTES,
      })
      .catch((error: unknown) => {
        throw networkError(url, error);
      });
    if (reply.isCut)
      throw new ProviderError('answer_too_large', `The answer of ${hostOf(url)} is too large.`);
    if (reply.status >= 300 && reply.status < 400)
      throw new ProviderError(
        'redirected',
        `${hostOf(url)} answered with a redirect, which is not followed.`,
      );
    return convert(url, reply);
  };
}

export function hostOf(url: string): string {
  return new URL(url).host;
}

const WITHOUT_BODY = [204, 205, 304];

export function plainResponse(_url: string, { status, headers, excerpt }: OutgoingReply): Response {
  const type = [headers['content-type']].flat()[0];
  return new Response(WITHOUT_BODY.includes(status) ? null : excerpt, {
    status,
    ...(type === undefined ? {} : { headers: { 'content-type': type } }),
  });
}

/**
 * The messages of the causes are not repeated: they can contain a URL with parameters, or the private address of a name,
 * which the tenant must not learn.
 */
function networkError(url: string, error: unknown): ProviderError {
  const refusal = causesOf(error).find((one) => one instanceof PlatformError);
  if (refusal)
    return new ProviderError(
      'address_refused',
      `${hostOf(url)} has a private address. An operator can list it under outgoing.allow.`,
      { cause: error },
    );
  const isTimeout = causesOf(error).some((one) => one instanceof Error && /Timeout/.test(one.name));
  return isTimeout
    ? new ProviderError('timeout', `${hostOf(url)} did not answer in time.`, { cause: error })
    : new ProviderError('unreachable', `${hostOf(url)} cannot be reached.`, { cause: error });
}
