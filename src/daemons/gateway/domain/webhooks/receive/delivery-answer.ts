import { type Caller, HEADERS } from '../../../../../contracts/index.ts';
import type { ReceiveRules } from '../../../../../webhooks/receive-rules.ts';
import type { ReplyContent } from '../dispatch/handler-reply.ts';
import { acceptedReply } from './accepted-reply.ts';
import type { DeliveryContext } from './delivery-context.ts';

export interface DeliveryAnswer {
  status: number;
  body: unknown;
  /** Body that is sent instead of `body`. */
  content?: ReplyContent | undefined;
  headers: Record<string, string>;
  webhookId: string;
  /** Identity of the authenticated sender. Null before authentication. */
  caller: Caller | null;
  /**
   * Records that the response has been written or can no longer be written. The handler of an async delivery starts
   * only after this call.
   */
  answered: () => void;
}

/** Answer of one processing step, before the platform headers. */
export interface Answered {
  status: number;
  body: unknown;
  content?: ReplyContent | undefined;
  headers?: Record<string, string> | undefined;
  answered?: () => void;
  /** Work that starts after the request was recorded. */
  afterRecord?: () => void;
  record: 'challenge' | 'duplicate' | 'handled';
}

/** Default value of the Retry-After header for errors without a Retry-After value, in seconds. */
const RETRY_SECONDS = '5';

const DUPLICATE: Answered = { status: 200, body: { status: 'duplicate' }, record: 'duplicate' };

/** Returns the response to a duplicate: what the sender requires of an accepted delivery, if it does. */
export function duplicateOf({ accepted }: ReceiveRules): Answered {
  return accepted ? { ...DUPLICATE, ...acceptedReply(accepted) } : DUPLICATE;
}

/** Returns the response to a delivery with the headers of the platform. */
export function answerOf(
  { webhookId, caller }: DeliveryContext,
  status: number,
  body: unknown,
  given: Record<string, string> = {},
): DeliveryAnswer {
  const headers: Record<string, string> = { [HEADERS.webhookId]: webhookId };
  for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = value;
  if (status === 503) headers['retry-after'] ??= RETRY_SECONDS;
  return { status, body, headers, webhookId, caller, answered: noop };
}

export function noop(): void {}
