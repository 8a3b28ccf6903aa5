import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { ApiError, call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Notice } from '../../ui/notice.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';

const UNAUTHORIZED = 401;

/** Replays a delivery that was refused with 401. The gateway verifies it again; a person can overrule the verdict. */
export function RefusedReplay({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const { webhookId, httpStatus, replayableUntil, replayedBy } = delivery;
  if (replayedBy !== null)
    return (
      <p>
        It was replayed. Next: <a href={`/studio/deliveries/${replayedBy}`}>open the replay</a>
      </p>
    );
  if (httpStatus !== UNAUTHORIZED) return null;
  if (replayableUntil === null)
    return <p>Its request is not stored. When the cause is corrected, let the sender send it again.</p>;
  return (
    <>
      <p>
        When the cause is corrected, replay it. The gateway then checks its signature again. Its request is
        stored until <Time ms={replayableUntil} />.
      </p>
      <Buttons webhookId={webhookId} />
    </>
  );
}

function Buttons({ webhookId }: { webhookId: string }) {
  const { route } = useLocation();
  const action = useAction();
  const [isStillRefused, setStillRefused] = useState(false);
  const run = async (name: 'replayDelivery' | 'trustDelivery'): Promise<string> => {
    try {
      const replayed = await call(name, { params: { webhookId } });
      outdate('getDelivery');
      route(`/studio/deliveries/${replayed.webhookId}`);
      return '';
    } catch (error) {
      setStillRefused(error instanceof ApiError && error.details.explanation !== undefined);
      throw error;
    }
  };
  return (
    <>
      <p class="actions">
        <button
          type="button"
          disabled={action.isBusy}
          onClick={() => action.run(() => run('replayDelivery'))}
        >
          Replay the delivery
        </button>
      </p>
      {action.message && <Notice action={action} />}
      {isStillRefused && (
        <>
          <p>
            You can run it nevertheless. Its signature does not prove who sent it, so it can be forged: read
            its body first. Only administrators can do this, and the audit log names you.
          </p>
          <p class="actions">
            <button
              type="button"
              class="danger"
              disabled={action.isBusy}
              onClick={() => action.run(() => run('trustDelivery'))}
            >
              Run it although it is not authentic
            </button>
          </p>
        </>
      )}
    </>
  );
}
