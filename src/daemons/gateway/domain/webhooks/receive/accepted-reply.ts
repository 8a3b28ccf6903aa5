import type { AcceptedReply } from '../../../../../contracts/index.ts';
import type { ReplyContent } from '../dispatch/handler-reply.ts';

/** Response to an authentic delivery. */
export interface AcceptedAnswer {
  status: number;
  body: unknown;
  /** Body that is sent instead of `body`. */
  content?: ReplyContent | undefined;
  headers?: Record<string, string> | undefined;
  /** Records that the response has been written or can no longer be written. */
  answered?: () => void;
}

/** Returns the response that a sender requires for an accepted delivery. */
export function acceptedReply({ status, contentType, body }: AcceptedReply): AcceptedAnswer {
  const type = contentType ?? (body === '' ? undefined : 'text/plain; charset=utf-8');
  return { status, body, content: { type, data: body } };
}
