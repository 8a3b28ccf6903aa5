import { join } from 'node:path';
import { loadConfig } from '../../../../src/kit/config/config.ts';
import type { FolderLimits } from '../../../../src/plugins/scripts/folder-walk.ts';
import { runScript, type Script } from '../../../../src/plugins/scripts/run-script.ts';
import { requireScriptSandbox } from '../../../../src/plugins/scripts/script-sandbox.ts';
import { Workspaces } from '../../../../src/plugins/scripts/workspaces.ts';
import { tempDir } from '../../../support/daemon.ts';

/** Runs scripts without a workflow service. The sandbox has been probed when it returns. */
export async function scriptRunner(limits?: FolderLimits) {
  const projectDir = await tempDir();
  const dataDir = join(projectDir, '.svc');
  const { config } = loadConfig({ cwd: projectDir, env: {} });
  config.execution.worker.sandbox = 'bwrap';
  const places = { projectDir, dataDir, configFile: null, config, env: { HOME: '/home/svc' } };
  await requireScriptSandbox(places);
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) } as never;
  const workspaces = new Workspaces({ dataDir, logger, ...(limits ? { limits } : {}) });

  function run(script: Partial<Script> & Pick<Script, 'runId' | 'text'>): Promise<Record<string, string>> {
    const { signal } = new AbortController();
    const defaults = {
      tenantId: 'default',
      shell: 'bash',
      env: {},
      network: false,
      memoryMb: 256,
      signal,
    } as const;
    return runScript({ ...defaults, log() {}, ...script }, { workspaces, places });
  }
  return { run, workspaces, dataDir, warnings };
}
