import { readRunFacts, readWaitingApprovals } from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

/** Routes from which the gateway learns what to alert people about. @spec docs/alerts.md */
export function factRoutes(
  http: Http,
  {
    facts,
    waitingApprovals,
    internalSecret,
  }: Pick<WorkflowServices, 'facts' | 'waitingApprovals' | 'internalSecret'>,
): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => {
      await identify(request);
    });
    mount(own, readRunFacts, { auth: 'open' }, async ({ body: { after, limit } }) => ({
      facts: (await facts?.read(after, limit)) ?? [],
    }));
    mount(own, readWaitingApprovals, { auth: 'open' }, async ({ body: { before, limit, tenantId } }) => ({
      approvals: await waitingApprovals(before, limit, tenantId),
    }));
    done();
  });
}
