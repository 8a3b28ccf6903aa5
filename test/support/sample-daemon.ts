import { z } from 'zod';
import { type Endpoint, endpoint } from '../../src/contracts/index.ts';
import { defineDaemon } from '../../src/daemons/define-daemon.ts';
import { type Http, type MountOptions, mount } from '../../src/http/index.ts';

/** A daemon with whatever routes a test wants to look at; everything else is the real thing. */
export function sampleDaemon(...routes: Array<(http: Http) => void>) {
  return defineDaemon({ name: 'workflow', defaultPort: 0, services: () => ({}), routes });
}

const BODY_LIMIT_BYTES = 10 * 1024 * 1024;

/** An open endpoint that answers what it understood, of bodies as large as one behind a token takes. */
export function echo(
  definition: Partial<Endpoint> & { method: Endpoint['method']; path: string },
  options: Partial<MountOptions> = {},
): (http: Http) => void {
  const described = endpoint({ reply: z.unknown(), ...definition } as Endpoint);
  return (http) =>
    mount(
      http,
      described,
      { auth: 'open', bodyLimitBytes: BODY_LIMIT_BYTES, ...options },
      ({ params, query, body, caller }) => ({
        params: params ?? null,
        query: query ?? null,
        body: body ?? null,
        caller,
      }),
    );
}
