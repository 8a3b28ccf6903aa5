import type { ExecutionRequest, ManifestV3, RouteDecl } from '../../contracts/index.ts';

type Called = Pick<ExecutionRequest, 'handler' | 'host' | 'hostContext'>;

/**
 * Creates a function that returns the name of a handler. The name is the id, event or route under which the manifest
 * declares the handler. An undeclared handler is named by its reference `<file>#<export>`.
 */
export function createHandlerNames(): (manifest: ManifestV3, called: Called) => string {
  const known = new WeakMap<ManifestV3, Map<string, string>>();
  return (manifest, called) => {
    let names = known.get(manifest);
    if (!names) {
      names = namesOf(manifest);
      known.set(manifest, names);
    }
    return nameOfCall(manifest, called) ?? names.get(called.handler) ?? called.handler;
  };
}

/**
 * Returns the name of the called webhook, command or route. Returns undefined if the manifest has no match for the
 * call.
 */
function nameOfCall(manifest: ManifestV3, { handler, host, hostContext }: Called): string | undefined {
  const { event, command, method, path } = hostContext;
  if (host === 'webhook')
    return manifest.webhooks.find((webhook) => webhook.handler === handler && webhook.event === event)?.event;
  if (host === 'cli') return manifest.commands.find(({ id }) => id === command)?.id;
  if (host !== 'rest' || typeof path !== 'string') return undefined;
  const routes = (manifest.rest?.routes ?? []).filter(
    (route) => route.handler === handler && route.method === method,
  );
  const route = routes.length > 1 ? routes.find((one) => serves(one, path)) : routes[0];
  return route && `${route.method} ${route.path}`;
}

/** Returns whether a route serves the path. The path can start with the plugin's base path. */
function serves({ path: pattern }: RouteDecl, path: string): boolean {
  const wanted = pattern.split('/').slice(1);
  const given = path.split('/').slice(-wanted.length);
  return wanted.every((part, index) => part.startsWith(':') || part === given[index]);
}

function namesOf({ commands, jobs, webhooks, rest }: ManifestV3): Map<string, string> {
  return new Map([
    ...(rest?.routes ?? []).map(({ handler, method, path }) => [handler, `${method} ${path}`] as const),
    ...webhooks.map(({ handler, event }) => [handler, event] as const),
    ...jobs.map(({ handler, id }) => [handler, id] as const),
    ...commands.map(({ handler, id }) => [handler, id] as const),
  ]);
}
