import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../kit/clock.ts';
import { silentLogger } from '../../../kit/logger.ts';
import { systemRandom } from '../../../kit/random.ts';
import { createDescriber, createWorkerBackend, type PluginDescriber } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';

/** Loads plugin code on this machine, in the sandbox, without a platform that runs; the processes go with `use`. */
export async function withDescriber<Result>(
  { platform }: CommandContext,
  use: (describer: PluginDescriber) => Promise<Result>,
): Promise<Result> {
  const { config, configFile, dataDir } = platform();
  const backend = createWorkerBackend({
    config: config.execution.worker,
    services: {},
    logger: silentLogger,
    clock: systemClock,
    // Without a project there is no data to keep from the plugin; the working directory may well be its folder.
    dataDir: configFile === null ? join(tmpdir(), 'svc-without-data') : dataDir,
  });
  try {
    return await use(createDescriber(backend, systemRandom()));
  } finally {
    await backend.close();
  }
}
