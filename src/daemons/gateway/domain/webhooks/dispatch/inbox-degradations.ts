import type { Degradation } from '../../../../../contracts/index.ts';
import { formatBytes } from '../../../../../kit/data/bytes.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';

/**
 * Returns a health degradation while the database rejects writes. Deliveries are accepted while the write-ahead log has
 * room. File names and causes are only logged, because the health endpoint is public. @spec docs/decisions/0007
 */
export function inboxDegradations({
  applyFailure,
  waitingBytes,
}: Pick<WebhookInbox, 'applyFailure' | 'waitingBytes'>): Degradation[] {
  if (applyFailure === undefined) return [];
  return [
    {
      reasonCode: 'INBOX_NOT_FILED',
      message: `The database accepts no deliveries. New ones are accepted into the journal (${formatBytes(waitingBytes)}) while it has room; lists and searches of deliveries fail meanwhile. For the cause, see: svc logs gateway --level error`,
    },
  ];
}
