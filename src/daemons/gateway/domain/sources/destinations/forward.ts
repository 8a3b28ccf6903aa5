import { HEADERS } from '../../../../../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours } from '../../../../../kit/time/duration.ts';
import type { OutgoingClient, OutgoingReply } from '../../../../outgoing/outgoing-client.ts';
import { DestinationFailure, type HandOver, type HandOverTo } from './destination-call.ts';

/** Headers of one connection (RFC 9110 7.6.1), and headers that describe the request to the gateway. */
const DROPPED = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'expect', 'content-length', 'host', 'cookie', 'cookie2'],
  HEADERS.internalSecret,
]);
const OWN_PREFIX = 'x-svc-';
const GONE = 410;
const MAX_RETRY_AFTER_MS = hours(24);

/** Forwards the original method, headers and body to a URL. @spec docs/sources.md "Destinations" */
export function forwardTo(client: Pick<OutgoingClient, 'send'>, clock: Clock): HandOverTo {
  return async (handOver) => {
    const { settings, timeoutMs, mayBePrivate, body } = handOver;
    const headers = forwardedHeaders(handOver, await handOver.originalHeaders());
    const reply = await client
      .send({
        url: settings.forward!,
        method: 'POST',
        headers,
        body,
        timeoutMs,
        mayBePrivate,
      })
      .catch((error: unknown) => {
        throw networkFailure(error, timeoutMs);
      });
    const { status, excerpt } = reply;
    if (status >= 200 && status < 300) return { status, excerpt };
    throw new DestinationFailure(refusalText(status), {
      isFinal: status === GONE,
      retryAfterMs: retryAfterMs(reply, clock),
      details: { status, excerpt },
    });
  };
}

/** Returns the headers to send, as a flat list, so that repeated headers stay repeated. */
function forwardedHeaders(
  { delivery, attempt, isTransformed }: HandOver,
  headers: ReadonlyArray<[string, string]>,
): string[] {
  const dropped = new Set(DROPPED);
  for (const [name, value] of headers) {
    if (name.toLowerCase() === 'connection')
      for (const named of value.split(',')) dropped.add(named.trim().toLowerCase());
  }
  if (isTransformed) dropped.add('content-type');
  const sent = headers.filter(([name]) => {
    const lower = name.toLowerCase();
    return !dropped.has(lower) && !lower.startsWith(OWN_PREFIX);
  });
  return [
    ...sent.flat(),
    ...(isTransformed ? ['content-type', 'application/json'] : []),
    ...[HEADERS.deliveryId, delivery.webhookId, 'x-svc-attempt', String(attempt)],
    ...['x-svc-source', delivery.event],
  ];
}

function refusalText(status: number): string {
  if (status >= 300 && status < 400) return `The receiver answered ${status}. Redirects are not followed.`;
  if (status === GONE) return 'The receiver answered 410 (gone), so the delivery is not tried again.';
  return `The receiver answered ${status}.`;
}

function networkFailure(error: unknown, timeoutMs: number): unknown {
  if (error instanceof PlatformError)
    return new DestinationFailure(error.message, { details: error.details });
  const { cause } = error as { cause?: unknown };
  if (cause instanceof PlatformError) return networkFailure(cause, timeoutMs);
  if ((error as Error).name === 'TimeoutError')
    return new DestinationFailure(`The receiver did not answer within ${timeoutMs} ms.`);
  return new DestinationFailure(`The receiver could not be reached: ${codeOf(error) ?? messageOf(error)}.`);
}

/** Returns the time that the receiver asks to wait, at most a day. */
function retryAfterMs({ headers }: OutgoingReply, clock: Clock): number | undefined {
  const given = headers['retry-after'];
  if (typeof given !== 'string') return undefined;
  const ms = /^\d{1,9}$/.test(given) ? Number(given) * 1000 : Date.parse(given) - clock.now();
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined;
}
