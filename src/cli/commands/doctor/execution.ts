import { existsSync } from 'node:fs';
import { listPlugins } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';
import { sandboxStatus } from '../../../plugins/index.ts';
import { nodeHttp } from '../../supervisor/node-http.ts';
import { withDescriber } from '../plugins/local-describer.ts';
import { loadProjectPlugins } from '../plugins/project-plugins.ts';
import { type Fact, failure, fine, type Patient, warning } from './check.ts';

const REACH_MS = 3000;

/** What stands between plugin code and this machine. */
export async function checkSandbox({ loaded, running }: Patient): Promise<Fact[]> {
  const sandbox = running?.sandbox ?? (await sandboxStatus(loaded.config.execution.worker.sandbox));
  const why = sandbox.reason ? ` (${sandbox.reason})` : '';
  if (sandbox.mode === 'bwrap') return [fine("bubblewrap and Node's permission model")];
  if (sandbox.mode === 'unavailable')
    return [
      failure(
        `Plugins do not start: the sandbox of the config does not work${why}.`,
        'Install bubblewrap, or set execution.worker.sandbox to auto.',
      ),
    ];
  const network = sandbox.networkGuarded ? '' : ', and the network is not guarded';
  return [
    warning(
      `Node's permission model alone confines plugins${network}${why}: a seat belt, no wall.`,
      'Install bubblewrap before running plugins you do not trust; docs/security.md says what each keeps out.',
    ),
  ];
}

/** Asked only when the config sends plugins there. */
export async function checkEngine({ loaded: { config } }: Patient): Promise<Fact[]> {
  const { execution } = config;
  const backends = [execution.default, ...Object.values(execution.plugins).map(({ backend }) => backend)];
  if (!backends.includes('container')) return [fine('not used by this configuration')];
  const { socket, image } = execution.container;
  if (!existsSync(socket))
    return [
      failure(
        `There is no container engine at ${socket}.`,
        'Start Docker, or podman system service, or set execution.container.socket.',
      ),
    ];
  const found = await statusOf({
    socketPath: socket,
    path: `/v1.41/images/${encodeURIComponent(image)}/json`,
  });
  if (found === 200) return [fine(`${image} is ready at ${socket}`)];
  if (found === 404)
    return [failure(`The engine at ${socket} has no image ${image}.`, 'npm run image:runner makes it.')];
  const what = typeof found === 'number' ? `answers ${found}` : `does not answer (${found})`;
  return [
    failure(
      `The engine at ${socket} ${what}.`,
      'Check that this user may use it: being in the group docker, for one.',
    ),
  ];
}

/** Services of others that the gateway forwards to. Any answer will do. */
export async function checkUpstreams({ loaded: { config } }: Patient): Promise<Fact[]> {
  const named = Object.entries(config.gateway.upstreams).flatMap(([name, { url }]) =>
    url ? [{ name, url }] : [],
  );
  if (named.length === 0) return [fine('those of this platform')];
  return Promise.all(
    named.map(async ({ name, url }) => {
      try {
        await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(REACH_MS), redirect: 'manual' });
        return fine(`${name} answers at ${new URL(url).origin}`);
      } catch (error) {
        const cause = (error as { cause?: unknown }).cause ?? error;
        return failure(
          `The upstream ${name} at ${new URL(url).origin} cannot be reached: ${messageOf(cause)}.`,
          `Start it, or set gateway.upstreams.${name}.url.`,
        );
      }
    }),
  );
}

/** As the platform that runs tells; else as they would load now. */
export async function checkPlugins(patient: Patient): Promise<Fact[]> {
  const { running, context } = patient;
  const remedyOf = (id: string) =>
    `svc plugins show ${id}, or svc plugins validate <folder>, lists every fault.`;
  if (running) {
    const { items } = await context.client.call(listPlugins, {});
    const broken = items.filter(({ status }) => status === 'broken');
    if (broken.length === 0) return [fine(counted(items.length))];
    return broken.map(({ id, faults, keptVersion }) => {
      const state = keptVersion === null ? 'is broken' : `is broken, and its version ${keptVersion} runs on`;
      return failure(`The plugin ${id} ${state}: ${faults[0]?.message ?? 'see the log'}`, remedyOf(id));
    });
  }
  const { plugins, broken } = await withDescriber(context, (describer) =>
    loadProjectPlugins(context, describer),
  );
  if (broken.length === 0) return [fine(counted(plugins.length))];
  return broken.map(({ id, folder: at, faults }) =>
    failure(
      `The plugin ${id ?? at} is broken: ${faults[0]?.message ?? 'see the log'}`,
      `svc plugins validate ${at}`,
    ),
  );
}

const counted = (plugins: number): string =>
  `${plugins} ${plugins === 1 ? 'plugin' : 'plugins'}, none broken`;

/** The status of an answer over a unix socket, or the code of the failure. */
function statusOf(address: { socketPath: string; path: string }): Promise<number | string> {
  return new Promise((resolve) => {
    const request = nodeHttp().get({ ...address, agent: false, timeout: REACH_MS }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('timeout', () => request.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })));
    request.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? 'UNKNOWN'));
  });
}
