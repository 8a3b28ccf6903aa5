import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { ToolSource } from './catalog.ts';
import type { PluginTools } from './plugin-tools.ts';
import type { WorkflowTools } from './workflow-tools.ts';

export interface OfferedToolsDeps {
  plugins: Pick<PluginTools, 'list' | 'find'>;
  workflows: Pick<WorkflowTools, 'list'>;
  logger: Pick<Logger, 'warn'>;
}

/** Creates the source of the tools of plugins and workflows. Tools of plugins win over those of workflows. */
export function offeredTools({ plugins, workflows, logger }: OfferedToolsDeps): ToolSource {
  let reported = '';
  function reportRefused(names: string): void {
    if (names !== '' && names !== reported)
      logger.warn(
        `Tools of workflows have names of plugin tools and are not offered: ${names}. Set mcp.name.`,
      );
    reported = names;
  }
  return {
    async list(call) {
      const [own, others] = await Promise.all([plugins.list(call), workflows.list()]);
      const taken = new Set(own.map(({ name }) => name));
      const refused = others.filter(({ name }) => taken.has(name));
      reportRefused(refused.map(({ name }) => name).join(', '));
      return [...own, ...others.filter(({ name }) => !taken.has(name))];
    },
    find: async (call, wanted) =>
      (await plugins.find(call, wanted)) ?? (await workflows.list()).find(({ name }) => name === wanted),
  };
}
