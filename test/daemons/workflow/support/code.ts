import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startRun } from '../../../../src/contracts/index.ts';
import { type TestDaemonOptions, tempDir } from '../../../support/daemon.ts';
import { startWorkflow, type TestWorkflow } from './workflow.ts';

export type CodeWorkflow = TestWorkflow & {
  /** The plugin's folder. */
  folder: string;
  /** Starts a run of one of its workflows. */
  begin(workflowId: string, input?: unknown): Promise<string>;
  /** `<step> <status>` of each step. */
  states(id: string): Promise<string[]>;
  /** Other code for the same workflows, in fresh processes. */
  rewrite(source: string): Promise<void>;
  /** Moves time on once, and has the engine look. */
  wakeAfter(ms: number): Promise<void>;
  /** Moves time on by steps until the run has the status. */
  moveUntil(id: string, stepMs: number, ...statuses: string[]): ReturnType<TestWorkflow['run']>;
};

const HEAD = "import { defineCommand, defineWorkflow, fail, z } from 'svc-platform/sdk';\n";

/** Writes the plugin `code`: each `export const x = defineWorkflow({ id: 'x'` of the source is one of its workflows. */
export async function writeCodePlugin(
  projectDir: string,
  source: string,
  manifest: Record<string, unknown> = {},
): Promise<string> {
  const folder = join(projectDir, 'plugins/code');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"name": "code", "version": "1.0.0", "type": "module"}');
  await writeFile(join(folder, 'flows.js'), HEAD + source);
  const ids = [...source.matchAll(/defineWorkflow\(\{\s*id: '(\w+)'/g)].map(([, id]) => id);
  const written = {
    schema: 'svc.plugin/3',
    id: 'code',
    version: '1.0.0',
    workflows: ids.map((id) => ({ id, handler: `flows.js#${id}` })),
    ...manifest,
  };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(written));
  return folder;
}

/** The real daemon with the plugin `code`. */
export async function startCode(
  source: string,
  manifest: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
  options: TestDaemonOptions = {},
): Promise<CodeWorkflow> {
  const projectDir = await tempDir();
  const folder = await writeCodePlugin(projectDir, source, manifest);
  const it = await startWorkflow({ ...options, projectDir, config });
  return {
    ...it,
    folder,
    begin: async (workflowId, input = {}) =>
      (await it.call(startRun, { body: { workflowId, input } })).run.id,
    states: async (id) =>
      (await it.steps(id)).map((step) => `${step.id.replace('main.', '')} ${step.status}`),
    async rewrite(changed) {
      await writeFile(join(folder, 'flows.js'), HEAD + changed);
      await it.services.plugins.reload();
    },
    async wakeAfter(ms) {
      it.clock.advance(ms);
      await it.services.engine.tick();
    },
    async moveUntil(id, stepMs, ...statuses) {
      for (let i = 0; i < 200; i++) {
        const run = await it.run(id);
        if (statuses.includes(run.status)) return run;
        it.clock.advance(stepMs);
        await it.services.engine.tick();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      throw new Error(`the run is still ${(await it.run(id)).status}`);
    },
  };
}
