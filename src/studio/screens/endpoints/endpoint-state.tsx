import { DISABLE_AFTER_DAYS, MAX_RECENT_ATTEMPTS } from '../../../contracts/endpoint-health.ts';
import type { OutgoingEndpoint } from '../../../contracts/message-records.ts';
import { Status } from '../../ui/status.tsx';

const REASONS = {
  operator: 'by a person',
  failures: `because all attempts failed for ${DISABLE_AFTER_DAYS} days`,
  gone: 'because it answered 410 Gone',
} as const;

type State = Pick<OutgoingEndpoint, 'disabled' | 'disabledReason' | 'failingSince'>;

/** Returns the share of the newest attempts that succeeded. */
export function successText({ recentAttempts: { total, succeeded } }: OutgoingEndpoint): string {
  if (total === 0) return 'no attempt yet';
  const share = Math.floor((100 * succeeded) / total);
  return `${share} % of ${total === MAX_RECENT_ATTEMPTS ? 'the latest ' : ''}${total} attempts`;
}

/** Whether messages are sent to an endpoint, and whether they succeed. */
export function EndpointState({ endpoint: { disabled, disabledReason, failingSince } }: { endpoint: State }) {
  if (disabled)
    return (
      <>
        <Status value="disabled" /> {disabledReason && <span class="hint">{REASONS[disabledReason]}</span>}
      </>
    );
  return <Status value={failingSince === null ? 'active' : 'failing'} />;
}
