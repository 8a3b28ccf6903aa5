import { listPlugins } from '../../../contracts/index.ts';
import { withDescriber } from '../plugins/local-describer.ts';
import { loadProjectPlugins } from '../plugins/project-plugins.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/**
 * Reports broken plugins. Queries the running platform, or loads the plugins of the project if the platform is stopped.
 */
export async function checkPlugins(target: CheckTarget): Promise<Fact[]> {
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
