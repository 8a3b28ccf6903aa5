import { apiHealth, type Degradation, type Health, type ServiceName } from '../../contracts/index.ts';
import { createClient } from '../../http/client.ts';
import { lightFetch } from '../light-fetch.ts';
import type { ServiceStatus } from '../supervisor/control-protocol.ts';
import type { RunFile } from '../supervisor/run-file.ts';

/** How long a service may take to answer before it counts as hung. */
const ANSWER_MS = 3000;

export type ServiceDegradation = Degradation & { service: ServiceName };

/** What the services say of themselves; `null` for one that did not answer in time. */
export type Answers = ReadonlyMap<ServiceName, ServiceDegradation[] | null>;

/** Asks every service at once. */
export async function askServices(children: RunFile['children']): Promise<Answers> {
  const asked = children.flatMap(({ name, url }) =>
    url === null
      ? []
      : [
          healthOf(url, name)
            .then(degradationsIn, () => null)
            .then((answer) => [name, answer] as const),
        ],
  );
  return new Map(await Promise.all(asked));
}

/** What does not work as it should. A service that the supervisor knows to be away is not told a second time. */
export function degradedServices(answers: Answers, services: readonly ServiceStatus[]): ServiceDegradation[] {
  return services.flatMap(({ name, state, url }) => {
    const answer = answers.get(name);
    if (answer !== null) return answer ?? [];
    if (state !== 'ready') return [];
    const message = `${url} did not answer within ${ANSWER_MS / 1000} s; svc logs ${name} shows its last lines.`;
    return [{ service: name, reasonCode: 'NO_ANSWER', message }];
  });
}

/** A gateway that `--url`, SVC_GATEWAY_URL or `svc login` names, as it describes itself. */
export interface GatewayStatus {
  gateway: string;
  status: Health['status'];
  version: string;
  uptimeMs: number;
  degraded: ServiceDegradation[];
}

/** Throws UPSTREAM_UNAVAILABLE or UPSTREAM_TIMEOUT where there is none. */
export async function gatewayStatus(url: string): Promise<GatewayStatus> {
  const answer = await healthOf(url, 'gateway');
  const { status, version, uptimeMs } = answer;
  return { gateway: new URL(url).origin, status, version, uptimeMs, degraded: degradationsIn(answer) };
}

/** The path that every service has. */
function healthOf(url: string, peer: string): Promise<Health> {
  return createClient({ url, peer, send: lightFetch, timeoutMs: ANSWER_MS }).call(apiHealth);
}

const degradationsIn = ({ service, degraded = [] }: Health): ServiceDegradation[] =>
  degraded.map((each) => ({ service, ...each }));
