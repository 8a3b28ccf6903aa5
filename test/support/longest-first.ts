import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** In the order of their time: what begins last must not be what takes longest. */
const LONGEST = [
  'supervisor/supervisor',
  'plugins/isolation',
  'cli/json-contract',
  'plugins/containers',
  'daemons/workflow/code-recovery',
  'daemons/gateway/proxy',
  'daemons/workflow/recovery',
  'cli/backup',
  'daemons/workflow/fairness',
  'scenarios/elsewhere',
  'daemons/gateway/processes',
  'agent/agent',
  'daemons/workflow/code',
  'daemons/gateway/processes-webhooks',
  'plugins/image',
  'agent/network',
  'scenarios/containers',
  'scenarios/workflow-elsewhere',
  'cli/completion',
].map((name) => `/test/${name}.test.ts`);

/** On a fresh clone Vitest knows sizes alone, and the test that takes longest is one of the smallest files. */
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
