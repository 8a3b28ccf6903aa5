import { apiHealth, type Degradation, type Health, type ServiceName } from '../../../contracts/index.ts';
import { createClient } from '../../../http/client.ts';
import type { ServiceStatus } from '../../../supervisor/control-protocol.ts';
import type { RunFile } from '../../../supervisor/run-file.ts';
import { lightFetch } from '../../light-fetch.ts';

/** Time limit of a health request. A slower service is reported as not answering. */
const HEALTH_TIMEOUT_MS = 3000;

export type ServiceDegradation = Degradation & { service: ServiceName };

/** Degradations that each service reported. Null for a service that did not answer in time. */
export type Answers = ReadonlyMap<ServiceName, ServiceDegradation[] | null>;

/** Queries the health of all running services concurrently. */
export async function queryServices(children: RunFile['children']): Promise<Answers> {
  const queries = children.flatMap(({ name, url }) =>
    url === null
      ? []
      : [
          healthOf(url, name)
            .then(degradationsIn, () => null)
            .then((answer) => [name, answer] as const),
        ],
  );
  return new Map(await Promise.all(queries));
}

/**
 * Returns the degradations of the running services. Stopped services are omitted, because the service table already
 * shows their state.
 */
export function degradedServices(answers: Answers, services: readonly ServiceStatus[]): ServiceDegradation[] {
  return services.flatMap(({ name, state, url }) => {
    const answer = answers.get(name);
    if (answer !== null) return answer ?? [];
    if (state !== 'ready') return [];
    const message = `${url} did not answer within ${HEALTH_TIMEOUT_MS / 1000} s; see svc logs ${name}.`;
    return [{ service: name, reasonCode: 'NO_ANSWER', message }];
  });
}

/** Status of a gateway selected by `--url`, SVC_GATEWAY_URL or `svc login`. */
export interface GatewayStatus {
  gateway: string;
  status: Health['status'];
  version: string;
  uptimeMs: number;
  degraded: ServiceDegradation[];
}

/** Queries the health of a gateway. Throws UPSTREAM_UNAVAILABLE or UPSTREAM_TIMEOUT if the gateway does not answer. */
export async function gatewayStatus(url: string): Promise<GatewayStatus> {
  const answer = await healthOf(url, 'gateway');
  const { status, version, uptimeMs } = answer;
  return { gateway: new URL(url).origin, status, version, uptimeMs, degraded: degradationsIn(answer) };
}

/** Queries a health path that every service serves. */
function healthOf(url: string, peer: string): Promise<Health> {
  return createClient({ url, peer, send: lightFetch, timeoutMs: HEALTH_TIMEOUT_MS }).call(apiHealth);
}

const degradationsIn = ({ service, degraded = [] }: Health): ServiceDegradation[] =>
  degraded.map((each) => ({ service, ...each }));
