import type { PlatformServices } from '../../plugins/index.ts';

/**
 * Callback that is called before each platform call of a handler. `service` is the name of the service in `ctx`, such
 * as `invoke`.
 */
export type OnServiceCall = (pluginId: string, service: string) => void;

export function watchedServices(services: PlatformServices, onCall: OnServiceCall): PlatformServices {
  const watched = Object.entries(services).map(([service, methods]) => {
    const told = Object.entries(methods).map(([name, method]): [string, typeof method] => [
      name,
      (context, args) => {
        onCall(context.request.plugin.id, service);
        return method(context, args);
      },
    ]);
    return [service, Object.fromEntries(told)];
  });
  return Object.fromEntries(watched);
}
