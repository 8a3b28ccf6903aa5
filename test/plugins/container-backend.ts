import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type ExecutionRequest, PlatformConfig } from '../../src/contracts/index.ts';
import { createLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { type ContainerAccess, ContainerBackend, createPlatformServices } from '../../src/plugins/index.ts';
import { captureLogs, tempDir } from '../support/daemon.ts';
import type { TestEngine } from './engine.ts';
import { FIXTURES, requestFor, storeState } from './support.ts';

export interface ContainerOptions {
  config?: Record<string, unknown>;
  dataDir?: string;
  environment?: NodeJS.ProcessEnv;
  instance?: string;
  endedInstances?: readonly string[];
  issueAccess?: (request: ExecutionRequest) => Promise<ContainerAccess>;
  /** The file of the handlers, and the plugin's folder. */
  file?: string;
  plugin?: string;
  root?: string;
}

/** A container backend of its own on an engine, closed when the test ends. */
export async function startContainerBackend(engine: Pick<TestEngine, 'socket'>, options: ContainerOptions) {
  const { config, dataDir, environment, issueAccess, plugin = 'container-attacker' } = options;
  const { file = 'attacks.js', root = join(FIXTURES, plugin) } = options;
  const logs = captureLogs();
  const logger = createLogger({ serviceId: 'test', output: logs, clock: systemClock, level: 'debug' });
  const backend = new ContainerBackend({
    config: {
      ...PlatformConfig.parse({}).execution.container,
      socket: engine.socket,
      memoryMb: 128,
      ...config,
    },
    services: createPlatformServices({ state: await storeState(), logger, clock: systemClock }),
    logger,
    clock: systemClock,
    dataDir: dataDir ?? (await tempDir()),
    instance: options.instance ?? 'node-a',
    endedInstances: options.endedInstances ?? [],
    issueAccess: issueAccess ?? (async () => ({ env: {}, end: async () => {} })),
    ...(environment ? { environment } : {}),
  });
  onTestFinished(() => backend.close());
  const call = async (handler: string, input?: unknown, more: Record<string, unknown> = {}) => {
    const request = requestFor(`${file}#${handler}`, { plugin, root, input, timeoutMs: 20_000, ...more });
    return (await backend.run(request)).result;
  };
  return { backend, logs, call };
}
