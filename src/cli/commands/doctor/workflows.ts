import { listHosts, listWorkflows, type WorkflowFault } from '../../../contracts/index.ts';
import { createDefinitions } from '../../../daemons/workflow/domain/definition/definitions.ts';
import { knownPlugin, manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { checkingKinds } from '../../../daemons/workflow/step-kinds.ts';
import { readWorkflowFiles } from '../../../daemons/workflow/workflow-files.ts';
import { unsetSecrets } from '../../../kit/secret-ref.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { withDescriber } from '../plugins/local-describer.ts';
import { loadProjectPlugins } from '../plugins/project-plugins.ts';
import { type Fact, failure, fine, type Patient } from './check.ts';

/** Whatever `svc workflows list` calls refused. */
export async function checkWorkflows(patient: Patient): Promise<Fact[]> {
  const faults = patient.running
    ? (await patient.context.client.call(listWorkflows)).faults
    : await faultsOnDisk(patient);
  if (faults.length === 0) return [fine('all definitions are valid')];
  return faults.map(({ source, path, message, unresolved }) =>
    failure(
      `${source}${path === '' ? '' : ` ${path}`}: ${message}`,
      unresolved ? 'Install or mend what it names, or correct the name.' : `Correct ${source}.`,
    ),
  );
}

/** As the workflow service would find them. */
async function faultsOnDisk({ loaded, context }: Patient): Promise<WorkflowFault[]> {
  const { projectDir, config } = loaded;
  const { plugins } = await withDescriber(context, (describer) => loadProjectPlugins(context, describer));
  const known = new Map(plugins.map(({ id, manifest }) => [id, knownPlugin(manifest)]));
  const findPlugin = (id: string) => known.get(id);
  const definitions = createDefinitions({
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

/** Keys of models and stores that the config names and the environment does not have. */
export function checkAdapters({ loaded: { config }, env }: Patient): Fact[] {
  const unset = Object.entries(config.adapters).flatMap(([name, adapter]) =>
    unsetSecrets(adapter, env, `adapters.${name}`),
  );
  if (unset.length === 0) return [fine('every key that the configuration names is set')];
  return unset.map(({ key, variable }) =>
    failure(`${key} is \${${variable}}, which is not set.`, `Set ${variable} in the .env beside the config.`),
  );
}

/** Plugins that run on hosts alone, while none of these is connected. */
export async function checkHosts({ loaded: { config }, running, context }: Patient): Promise<Fact[]> {
  const onHosts = Object.entries(config.execution.plugins).filter(([, { backend }]) => backend === 'host');
  if (onHosts.length === 0) return [fine('no plugin runs on a host')];
  if (!running) return [fine(`${onHosts.length} plugins run on hosts, which connect when the platform runs`)];
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
    const which = hostId === undefined ? 'no host that fits is online' : `its only host ${hostId} is offline`;
    return fits
      ? []
      : [failure(`The plugin ${id} cannot run: ${which}.`, 'Start the agent there: svc agent run.')];
  });
  return facts.length > 0 ? facts : [fine('every plugin that runs on a host has one')];
}
