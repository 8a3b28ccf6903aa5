import { type Caller, listTriggers, startByDelivery } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { WorkflowServices } from '../services.ts';
import { starterOf } from './starter.ts';

const auth = 'caller';
/**
 * Prefix of the host id in webhook deliveries from the gateway. A host id is accepted only with the service key, so the
 * prefix can be trusted.
 */
const WEBHOOK_CALLER = 'webhook:';

/** Routes that the gateway calls for webhook deliveries. @spec docs/workflows.md "Started by a webhook" */
export function triggerRoutes(http: Http, { triggers }: WorkflowServices): void {
  mount(http, listTriggers, { auth }, ({ caller }) => {
    requireGateway(caller);
    return { items: triggers.list() };
  });
  mount(http, startByDelivery, { auth }, ({ body, caller, request }) => {
    requireGateway(caller);
    return triggers.start(body, { ...starterOf(caller, request), deliveryId: body.webhookId });
  });
}

function requireGateway({ hostId }: Caller): void {
  if (hostId.startsWith(WEBHOOK_CALLER)) return;
  throw new PlatformError('FORBIDDEN', 'Only the gateway may report deliveries.');
}
