import type { Degradation } from '../../../../contracts/index.ts';
import { formatBytes } from '../../../../kit/bytes.ts';
import type { WebhookInbox } from '../../../../store/ports/index.ts';

/**
 * What health says of an inbox whose database takes nothing: deliveries go on being accepted while their journal has room,
 * so it is no reason to take the gateway out of service. Anybody may ask, so names of files and causes are left to the log.
 * @spec docs/decisions/0007
 */
export function inboxDegradations({
  filingFailure,
  waitingBytes,
}: Pick<WebhookInbox, 'filingFailure' | 'waitingBytes'>): Degradation[] {
  if (filingFailure === undefined) return [];
  return [
    {
      reasonCode: 'INBOX_NOT_FILED',
      message: `The database takes no deliveries. They are accepted all the same and lie safe in their journal (${formatBytes(waitingBytes)}) while that has room; lists and searches of deliveries fail until then. Why: svc logs gateway --level error`,
    },
  ];
}
