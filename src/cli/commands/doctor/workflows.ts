import { listHosts, listWorkflows, type WorkflowFault } from '../../../contracts/index.ts';
import { Definitions } from '../../../daemons/workflow/domain/definition/definitions.ts';
import { knownPlugin, manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { checkingKinds } from '../../../daemons/workflow/step-kinds.ts';
import { readWorkflowFiles } from '../../../daemons/workflow/workflow-files.ts';
import { unsetSecrets } from '../../../kit/config/secret-ref.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { withDescriber } from '../plugins/local-describer.ts';
import { loadProjectPlugins } from '../plugins/project-plugins.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

export async function checkWorkflows(target: CheckTarget): Promise<Fact[]> {
  const faults = target.running
    ? (await target.context.client.call(listWorkflows)).faults
    : await faultsOnDisk(target);
  if (faults.length === 0) return [fine('all definitions are valid')];
  return faults.map(({ source, path, message, unresolved }) =>
    failure(
      `${source}${path === '' ? '' : ` ${path}`}: ${message}`,
      unresolved ? 'Install or repair the referenced plugin, or correct the name.' : `Correct ${source}.`,
    ),
  );
}

/** Validates the definitions on disk in the same way as the workflow service. */
async function faultsOnDisk({ loaded, context }: CheckTarget): Promise<WorkflowFault[]> {
  const { projectDir, config } = loaded;
  const { plugins } = await withDescriber(context, (describer) => loadProjectPlugins(context, describer));
  const known = new Map(plugins.map(({ id, manifest }) => [id, knownPlugin(manifest)]));
  const findPlugin = (id: string) => known.get(id);
  const definitions = new Definitions({
    kindOf: checkingKinds(),
    find: async () => undefined,
    findPlugin,
  });
  const files = await readWorkflowFiles(projectDir, config.workflows);
  definitions.register(files.found, files.faults);
  const ofPlugins = plugins.flatMap(({ id, manifest }) =>
    manifestFaults(manifest, findPlugin).map((fault) => ({ source: id, ...fault })),
  );
  return [...definitions.faults, ...ofPlugins];
}

/** Reports environment variables that the config uses for secrets of adapters but that are not set. */
export function checkAdapters({ loaded: { config }, env }: CheckTarget): Fact[] {
  const unset = Object.entries(config.adapters).flatMap(([name, adapter]) =>
    unsetSecrets(adapter, env, `adapters.${name}`),
  );
  if (unset.length === 0) return [fine('all referenced keys are set')];
  return unset.map(({ key, variable }) =>
    failure(
      `${key} is \${${variable}}, but ${variable} is not set.`,
      `Set ${variable} in the .env beside the config.`,
    ),
  );
}

/** Reports plugins that must run on a host while no matching host is connected. */
export async function checkHosts({ loaded: { config }, running, context }: CheckTarget): Promise<Fact[]> {
  const onHosts = Object.entries(config.execution.plugins).filter(([, { backend }]) => backend === 'host');
  if (onHosts.length === 0) return [fine('no plugin runs on a host')];
  if (!running)
    return [
      fine(`${onHosts.length} plugins run on hosts, which can connect only while the platform is running`),
    ];
  const hosts = await allPages((cursor) =>
    context.client.call(listHosts, { query: pageQueryOf(undefined, cursor) }),
  );
  const online = hosts.filter(({ valid, status }) => valid && status === 'online');
  const facts = onHosts.flatMap(([id, { hostId, labels = {}, capability }]) => {
    const fits = online.some(
      (host) =>
        (hostId === undefined || host.hostId === hostId) &&
        (capability === undefined || host.capabilities.includes(capability)) &&
        Object.entries(labels).every(([name, value]) => host.labels[name] === value),
    );
    const which = hostId === undefined ? 'no matching host is online' : `its only host ${hostId} is offline`;
    return fits
      ? []
      : [failure(`The plugin ${id} cannot run: ${which}.`, 'Start the agent there with svc agent run.')];
  });
  return facts.length > 0 ? facts : [fine('every plugin on hosts has a matching host online')];
}
