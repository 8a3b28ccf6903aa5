import { join } from 'node:path';
import { listPlugins } from '../../../contracts/index.ts';
import { NOT_SHARED_FILE, pluginsFolder, stillNotShared } from '../../../plugins/index.ts';
import { withDescriber } from '../plugins/local-describer.ts';
import { loadProjectPlugins } from '../plugins/project-plugins.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

/**
 * Reports broken plugins. Queries the running platform, or loads the plugins of the project if the platform is stopped.
 */
export async function checkPlugins(target: CheckTarget): Promise<Fact[]> {
  return [...(await checkLoaded(target)), ...(await checkNotShared(target))];
}

/** Reports plugins that this node had before all nodes shared one list, and that the shared list lacks. */
async function checkNotShared({ folder: { root } }: CheckTarget): Promise<Fact[]> {
  const entries = await stillNotShared(root);
  return entries.map(({ id, version, origin, folder }) => {
    const files = origin === 'installed' ? join(pluginsFolder(root), folder) : folder;
    return warning(
      `${id} ${version} of this node is not in the list of plugins that all nodes share`,
      `Run svc plugins install ${files} (or svc plugins update ${id} ${files}), or delete ${join(root, NOT_SHARED_FILE)} if you do not need it.`,
    );
  });
}

async function checkLoaded(target: CheckTarget): Promise<Fact[]> {
  const { running, context } = target;
  const remedyOf = (id: string) =>
    `Run svc plugins show ${id} or svc plugins validate <folder> to list all problems.`;
  if (running) {
    const { items } = await context.client.call(listPlugins, {});
    const broken = items.filter(({ status }) => status === 'broken');
    if (broken.length === 0) return [fine(summary(items.length))];
    return broken.map(({ id, faults, keptVersion }) => {
      const state = keptVersion === null ? 'is broken' : `is broken; version ${keptVersion} keeps running`;
      return failure(`The plugin ${id} ${state}: ${faults[0]?.message ?? 'see the log'}`, remedyOf(id));
    });
  }
  const { plugins, broken } = await withDescriber(context, (describer) =>
    loadProjectPlugins(context, describer),
  );
  if (broken.length === 0) return [fine(summary(plugins.length))];
  return broken.map(({ id, folder: at, faults }) =>
    failure(
      `The plugin ${id ?? at} is broken: ${faults[0]?.message ?? 'see the log'}`,
      `svc plugins validate ${at}`,
    ),
  );
}

const summary = (plugins: number): string =>
  `${plugins} ${plugins === 1 ? 'plugin' : 'plugins'}, none broken`;
