import { listWorkflows, type WorkflowFault } from '../../../contracts/index.ts';
import { Definitions } from '../../../daemons/workflow/domain/definition/definitions.ts';
import { knownPlugin, manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { checkingKinds } from '../../../daemons/workflow/step-kinds.ts';
import { readWorkflowFiles } from '../../../daemons/workflow/workflow-files.ts';
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
      unresolved
        ? 'Install or repair the referenced plugin, add the referenced workflow, or correct the name.'
        : `Correct ${source}.`,
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
    otherWorkflows: plugins.flatMap(({ manifest }) => manifest.workflows.map(({ id }) => String(id))),
  });
  const files = await readWorkflowFiles(projectDir, config.workflows);
  definitions.register(files.found, files.faults);
  const ofPlugins = plugins.flatMap(({ id, manifest }) =>
    manifestFaults(manifest, findPlugin).map((fault) => ({ source: id, ...fault })),
  );
  return [...definitions.faults, ...ofPlugins];
}
