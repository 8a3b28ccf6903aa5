import { processMetrics, rereadInProcess } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { requireGateway } from './service-caller.ts';

export interface GatewayProcessesServices {
  /** Reloads the plugins in this process. */
  rereadHere: () => Promise<void>;
  internalSecret: string;
}

/** Answers the other gateway processes that share the port with this process. */
export function gatewayProcessesRoutes(
  http: Http,
  { rereadHere, internalSecret }: GatewayProcessesServices,
): void {
  // Registered in a scope of its own, so that the hook applies only to these routes.
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => requireGateway(request, internalSecret));
    mount(own, rereadInProcess, { auth: 'open' }, async () => {
      await rereadHere();
      return { reread: true as const };
    });
    mount(own, processMetrics, { auth: 'open' }, async () => ({
      metrics: await http.kit.metrics.snapshot(),
    }));
    done();
  });
}
