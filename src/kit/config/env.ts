import { PublicUrl, SERVICE_NAMES, type ServiceName } from '../../contracts/index.ts';
import type { Environment } from './find.ts';
import type { JsonObject } from './merge.ts';
import type { ConfigProblem } from './problems.ts';

export interface EnvOverlay {
  overlay: JsonObject;
  problems: ConfigProblem[];
}

/**
 * Returns the config values that the environment sets: `SVC_<DAEMON>_PORT`, `SVC_<DAEMON>_HOST`,
 * `GATEWAY_PUBLIC_URL`.
 */
export function envOverlay(env: Environment): EnvOverlay {
  const problems: ConfigProblem[] = [];
  const overlay = Object.fromEntries(SERVICE_NAMES.map((name) => [name, listenOverlay(name, env, problems)]));
  const publicUrl = env.GATEWAY_PUBLIC_URL;
  if (publicUrl) {
    if (PublicUrl.safeParse(publicUrl).success) overlay.gateway = { ...overlay.gateway, publicUrl };
    else
      problems.push({
        path: 'env.GATEWAY_PUBLIC_URL',
        message: 'must be an http:// or https:// address, without credentials, query or fragment',
      });
  }
  return { overlay, problems };
}

function listenOverlay(name: ServiceName, env: Environment, problems: ConfigProblem[]): JsonObject {
  const prefix = `SVC_${name.toUpperCase()}`;
  const section: JsonObject = {};
  const host = env[`${prefix}_HOST`];
  const port = env[`${prefix}_PORT`];
  if (host) section.host = host;
  // Kubernetes sets `SVC_REST_PORT` to a URL such as `tcp://10.0.0.1:5050` if a service is named "svc-rest". Such a
  // value is not a port.
  if (port && !port.startsWith('tcp://')) {
    const number = parsePort(port);
    if (number === null)
      problems.push({ path: `env.${prefix}_PORT`, message: 'must be a port from 0 to 65535' });
    else section.port = number;
  }
  return section;
}

/** Parses a port from 0 to 65535. Returns null for any other text. */
export function parsePort(text: string): number | null {
  const number = Number(text);
  return /^\d{1,5}$/.test(text) && number <= 65535 ? number : null;
}
