import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By duration: the last file to start must not be the longest. */
const LONGEST = [
  'cli/json-contract',
  'daemons/workflow/code-recovery',
  'plugins/isolation',
  'plugins/container-attacks',
  'daemons/workflow/code',
  'daemons/gateway/processes',
  'supervisor/supervisor',
  'supervisor/platform',
  'cli/up',
  'plugins/containers',
  'scenarios/created-plugins-remote',
  'scenarios/remote-backends',
  'daemons/gateway/processes-webhooks',
  'daemons/gateway/proxy',
  'cli/init',
  'daemons/workflow/recovery',
  'scenarios/github-delivery',
  'cli/backup',
  'scenarios/containers',
  'scenarios/container-callbacks',
  'cli/plugins-create',
  'plugins/image',
  'agent/agent',
  'agent/network',
  'scenarios/workflow-remote',
  'cli/launcher',
  'daemons/workflow/fairness',
].map((name) => `/test/${name}.test.ts`);

/** Starts the longest files first. On a fresh clone, Vitest sorts by size, and the longest test is one of the smallest files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      // A process that is shared ends when the next file wants its own.
      if (project.config.isolate) return -1;
      const at = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return at === -1 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
