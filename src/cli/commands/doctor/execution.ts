import { existsSync } from 'node:fs';
import { sandboxStatus } from '../../../plugins/index.ts';
import { nodeHttp } from '../../../supervisor/node-http.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

const CONNECT_TIMEOUT_MS = 3000;

export async function checkSandbox({ loaded, running }: CheckTarget): Promise<Fact[]> {
  const sandbox = running?.sandbox ?? (await sandboxStatus(loaded.config.execution.worker.sandbox));
  const why = sandbox.reason ? ` (${sandbox.reason})` : '';
  if (sandbox.mode === 'bwrap') return [fine("bubblewrap and Node's permission model")];
  if (sandbox.mode === 'unavailable')
    return [
      failure(
        `Plugins cannot start, because the configured sandbox does not work${why}.`,
        'Install bubblewrap, or set execution.worker.sandbox to auto.',
      ),
    ];
  const network = sandbox.networkGuarded ? '' : ', which does not restrict the network';
  return [
    warning(
      `Plugins are isolated by Node's permission model only${network}${why}. It does not stop malicious code.`,
      'Install bubblewrap before running untrusted plugins. See docs/security.md for what each sandbox prevents.',
    ),
  ];
}

/** Checks the container engine if the configuration uses containers. */
export async function checkEngine({ loaded: { config } }: CheckTarget): Promise<Fact[]> {
  const { execution } = config;
  const backends = [execution.default, ...Object.values(execution.plugins).map(({ backend }) => backend)];
  if (!backends.includes('container')) return [fine('not used by this configuration')];
  const { socket, image } = execution.container;
  if (!existsSync(socket))
    return [
      failure(
        `Container engine socket ${socket} does not exist.`,
        'Start Docker, or podman system service, or set execution.container.socket.',
      ),
    ];
  const found = await statusOf({
    socketPath: socket,
    path: `/v1.41/images/${encodeURIComponent(image)}/json`,
  });
  if (found === 200) return [fine(`${image} is ready at ${socket}`)];
  if (found === 404)
    return [failure(`The engine at ${socket} has no image ${image}.`, 'Build it with npm run image:runner.')];
  const what = typeof found === 'number' ? `answered ${found}` : `does not answer (${found})`;
  return [
    failure(
      `The engine at ${socket} ${what}.`,
      'Check that this user may access it, for example through the docker group.',
    ),
  ];
}

/** Requests a path over a unix socket. Returns the HTTP status, or the code of a connection error. */
function statusOf(address: { socketPath: string; path: string }): Promise<number | string> {
  return new Promise((resolve) => {
    const request = nodeHttp().get({ ...address, agent: false, timeout: CONNECT_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('timeout', () => request.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })));
    request.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? 'UNKNOWN'));
  });
}
