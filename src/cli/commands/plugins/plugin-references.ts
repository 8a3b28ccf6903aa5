import { existsSync } from 'node:fs';
import { getPlugin, type ManifestV3, type Permissions, PluginId } from '../../../contracts/index.ts';
import type { FindPlugin, KnownPlugin } from '../../../daemons/workflow/domain/definition/unresolved.ts';
import { knownPlugin, manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { readWorkflowFiles } from '../../../daemons/workflow/workflow-files.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import {
  type LoadedPlugin,
  type PluginDescriber,
  type PluginFault,
  type PluginRegistry,
  relate,
} from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { selectedGateway } from '../../selected-gateway.ts';
import { loadProjectPlugins } from './project-plugins.ts';

type Fault = Pick<PluginFault, 'path' | 'message'>;

/**
 * Checks a plugin's references to other plugins. The other plugins belong to the project or to the selected gateway.
 */
export class PluginReferences {
  readonly #context: CommandContext;
  readonly #project: PluginRegistry | undefined;

  private constructor(context: CommandContext, project: PluginRegistry | undefined) {
    this.#context = context;
    this.#project = project;
  }

  static async load(context: CommandContext, describer: PluginDescriber): Promise<PluginReferences> {
    const hasProject = context.platform().configFile !== null || existsSync(context.folder().root);
    return new PluginReferences(
      context,
      hasProject ? await loadProjectPlugins(context, describer) : undefined,
    );
  }

  /**
   * Returns the problems of workflows and schedules. Also reports unknown names to which workflows, schedules or
   * `permissions.invoke` refer.
   */
  async nameFaults(manifest: ManifestV3): Promise<Fault[]> {
    const referenced = new Set(invoked(manifest).map(({ ref }) => pluginOf(ref)));
    manifestFaults(manifest, (id) => {
      referenced.add(id);
      return 'anything';
    });
    const found = new Map(
      await Promise.all([...referenced].map(async (id) => [id, await this.#find(id)] as const)),
    );
    const own = knownPlugin(manifest);
    return [
      ...manifestFaults(manifest, (id) => found.get(id)),
      ...invokeFaults(manifest, (id) => (id === manifest.id ? own : found.get(id))),
      ...(await this.#startFaults(manifest)),
    ];
  }

  /**
   * Returns schedules and handlers of ended runs whose workflow exists neither in a plugin nor in a file of the project.
   */
  async #startFaults({ workflows, schedules }: ManifestV3): Promise<Fault[]> {
    const own = new Set(workflows.map(({ id }) => id));
    const started = [
      ...schedules.map(({ workflow: id }, index) => ({ id, path: `schedules[${index}].workflow` })),
      ...workflows.flatMap(({ on }, index) => handlersOf(on, `workflows[${index}].on`)),
    ];
    const foreign = started.filter(({ id }) => typeof id === 'string' && !own.has(id));
    const known = foreign.length > 0 ? await this.#workflowIds() : undefined;
    if (!known) return [];
    return foreign
      .filter(({ id }) => !known.has(id))
      .map(({ id, path }) => ({ path, message: `workflow "${id}" does not exist` }));
  }

  /**
   * Returns the ids of all workflows. Returns undefined if a remote gateway is selected, if installed plugins are not
   * available, or if a workflow file has problems.
   */
  async #workflowIds(): Promise<Set<unknown> | undefined> {
    if (selectedGateway(this.#context) !== undefined || !this.#isComplete()) return undefined;
    const { projectDir, config } = this.#context.platform();
    const { found, faults } = await readWorkflowFiles(projectDir, config.workflows);
    if (faults.length > 0) return undefined;
    const ofPlugins = this.#project?.plugins.flatMap(({ manifest }) => manifest.workflows) ?? [];
    const ofFiles = found.map(({ definition }) => definition).filter(isRecord);
    return new Set([...ofPlugins, ...ofFiles].map(({ id }) => id));
  }

  /** Returns missing dependencies, and commands that another plugin of the project already defines. */
  relationFaults(plugin: LoadedPlugin): PluginFault[] {
    if (!this.#project) return [];
    const others = this.#project.plugins.filter(({ id, root }) => id !== plugin.id && root !== plugin.root);
    const { broken } = relate([...others, plugin], [...this.#project.broken]);
    const faults = broken.filter(({ folder }) => folder === plugin.root).flatMap((one) => one.faults);
    return this.#isComplete() ? faults : faults.filter(({ code }) => code !== 'MISSING_DEPENDENCY');
  }

  /**
   * Returns whether the installed plugins of the project are available. A fresh clone has no data folder and therefore
   * no installed plugins.
   */
  #isComplete(): boolean {
    return this.#project !== undefined && existsSync(this.#context.folder().root);
  }

  async #find(id: string): Promise<ReturnType<FindPlugin>> {
    const local = this.#project?.find(id);
    if (local) return knownPlugin(local.manifest);
    if (selectedGateway(this.#context) !== undefined) return this.#findRemote(id);
    return this.#isComplete() ? undefined : 'anything';
  }

  async #findRemote(id: string): Promise<KnownPlugin | 'anything' | undefined> {
    const { success, data: pluginId } = PluginId.safeParse(id);
    if (!success) return undefined;
    try {
      const { commands, jobs, webhooks } = await this.#context.client.call(getPlugin, {
        params: { pluginId },
      });
      return {
        commands: new Set(commands.map((command) => command.id)),
        jobs: new Set(jobs.map((job) => job.id)),
        webhooks: new Set(webhooks.map(({ event }) => event)),
      };
    } catch (error) {
      // Any other error, such as an unreachable gateway, does not prove that the plugin is missing.
      const isAbsent = error instanceof PlatformError && error.code === 'PLUGIN_NOT_FOUND';
      return isAbsent ? undefined : 'anything';
    }
  }
}

/** Returns the workflows that handlers of ended runs start, with their paths. The handlers are not validated yet. */
function handlersOf(on: unknown, path: string): Array<{ id: unknown; path: string }> {
  if (!isRecord(on)) return [];
  return ['failure', 'success'].flatMap((kind) => {
    const written = on[kind];
    return [written].flat().flatMap((handler, index) => {
      if (!isRecord(handler)) return [];
      const place = Array.isArray(written) ? `[${index}]` : '';
      return [{ id: handler.workflow, path: `${path}.${kind}${place}.workflow` }];
    });
  });
}

/**
 * Returns the plugin id of a reference such as `orders/sync`. A scoped plugin id contains a slash itself:
 * `@scope/name`.
 */
function pluginOf(ref: string): string {
  const parts = ref.split('/');
  return parts.slice(0, ref.startsWith('@') ? 2 : 1).join('/');
}

function invoked({ permissions, commands, rest }: ManifestV3): Array<{ path: string; ref: string }> {
  const of = (path: string, granted: Permissions | undefined) =>
    (granted?.invoke ?? []).map((ref, index) => ({ path: `${path}permissions.invoke[${index}]`, ref }));
  return [
    ...of('', permissions),
    ...commands.flatMap((command, index) => of(`commands[${index}].`, command.permissions)),
    ...(rest?.routes ?? []).flatMap((route, index) => of(`rest.routes[${index}].`, route.permissions)),
  ];
}

/**
 * Returns references to commands and jobs that an existing plugin does not define. References to missing plugins are
 * allowed, because these plugins can be optional.
 */
function invokeFaults(manifest: ManifestV3, find: FindPlugin): Fault[] {
  return invoked(manifest).flatMap(({ path, ref }) => {
    const plugin = find(pluginOf(ref));
    const name = ref.slice(pluginOf(ref).length + 1);
    if (plugin === undefined || plugin === 'anything' || name === '') return [];
    if (plugin.commands.has(name) || plugin.jobs.has(name)) return [];
    const existing = [...plugin.commands, ...plugin.jobs].slice(0, 20).join(', ');
    const message = `the plugin ${pluginOf(ref)} has no command or job "${name}"${existing === '' ? '' : `; it has ${existing}`}`;
    return [{ path, message }];
  });
}
