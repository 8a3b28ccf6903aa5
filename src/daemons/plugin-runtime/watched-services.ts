import { maskTenantSecretsIn } from '../../kit/telemetry/redact.ts';
import type { PlatformCallContext, PlatformServices } from '../../plugins/index.ts';

/**
 * Callback that is called before each platform call of a handler. `service` is the name of the service in `ctx`, such
 * as `invoke`.
 */
export type OnServiceCall = (pluginId: string, service: string) => void;

/** Services that store the arguments of calls in records, such as the input of a run. */
const RECORDED = new Set(['jobs', 'workflows', 'steps', 'emit']);

/** Returns the services, each of whose calls is reported before it runs. Arguments that are recorded are masked. */
export function watchedServices(
  services: PlatformServices,
  onCall: (context: PlatformCallContext, service: string, args: readonly unknown[]) => void,
): PlatformServices {
  const watched = Object.entries(services).map(([service, methods]) => {
    const told = Object.entries(methods).map(([name, method]): [string, typeof method] => [
      name,
      (context, args) => {
        onCall(context, service, args);
        const { tenantId } = context.request;
        return method(context, RECORDED.has(service) ? maskTenantSecretsIn(args, tenantId) : args);
      },
    ]);
    return [service, Object.fromEntries(told)];
  });
  return Object.fromEntries(watched);
}
