import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '../../../kit/security/random.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import {
  createDescriber,
  type PluginDescriber,
  projectSecrets,
  type ValidateOptions,
  WorkerBackend,
} from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';

/**
 * Returns the paths that a manifest must not grant to its plugin. Returns undefined outside of a project, because no
 * data needs protection.
 */
export function guardedBy({ platform }: CommandContext, root: string): ValidateOptions['guarded'] {
  const loaded = platform();
  if (loaded.configFile === null) return undefined;
  return { root, dataDir: loaded.dataDir, secrets: projectSecrets(loaded) };
}

/**
 * Calls `use` with a describer that evaluates plugin code in a local sandbox. No running platform is needed. The
 * sandbox processes end after the call.
 */
export async function withDescriber<Result>(
  { platform }: CommandContext,
  use: (describer: PluginDescriber) => Promise<Result>,
): Promise<Result> {
  const loaded = platform();
  const { config, configFile, dataDir } = loaded;
  const backend = new WorkerBackend({
    config: config.execution.worker,
    services: {},
    logger: silentLogger,
    clock: systemClock,
    secrets: configFile === null ? [] : projectSecrets(loaded),
    // Outside of a project, an unused path replaces the default data folder, because the default path can be inside the
    // plugin folder.
    dataDir: configFile === null ? join(tmpdir(), 'svc-without-data') : dataDir,
  });
  try {
    return await use(createDescriber(backend, systemRandom()));
  } finally {
    await backend.close();
  }
}
