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
  const { config, dataDir } = platform();
  const backend = createWorkerBackend({
    config: config.execution.worker,
    services: {},
    logger: silentLogger,
    clock: systemClock,
    dataDir,
  });
  try {
    return await use(createDescriber(backend, systemRandom()));
  } finally {
    await backend.close();
  }
}
