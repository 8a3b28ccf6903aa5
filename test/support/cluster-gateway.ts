import { PlatformConfig } from '../../src/contracts/index.ts';
import type { Environment } from '../../src/kit/config/config.ts';
import { type ServiceProcess, spawnService } from '../../src/supervisor/service-process.ts';
import { atEnd } from './at-end.ts';
import { TEST_KEYS, TEST_OPERATOR, tempDir } from './daemon.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { freePort } from './ports.ts';

export interface ClusterGatewayOptions {
  name: string;
  projectDir: string;
  /** What differs from the defaults. With `store.url`, the gateway belongs to a cluster. */
  config: Record<string, unknown> & { store?: { url: string }; gateway?: Record<string, unknown> };
  peers?: Record<string, string>;
  env?: Environment;
}

/**
 * A gateway in a process of its own, as the supervisor starts it. It keeps its port and data folder when it is started
 * again.
 */
export class ClusterGateway {
  readonly name: string;
  readonly url: string;
  /** Log records of all its processes. */
  readonly logs: Array<Record<string, unknown>> = [];
  readonly #options: ClusterGatewayOptions;
  readonly dataDir: string;
  #process: ServiceProcess | undefined;
  /** Number of its processes so far. Plugins find `<name>-<starts>` in the variable GENERATION. */
  #starts = 0;

  private constructor(options: ClusterGatewayOptions, dataDir: string, port: number) {
    this.#options = options;
    this.dataDir = dataDir;
    this.name = options.name;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async create(options: ClusterGatewayOptions): Promise<ClusterGateway> {
    const gateway = new ClusterGateway(options, await tempDir(), await freePort());
    atEnd(() => gateway.kill());
    return gateway;
  }

  /** How often one of its processes has become the scheduler of the deliveries. */
  get takeOvers(): number {
    const isTakeOver = ({ message }: { message?: unknown }) =>
      String(message).startsWith('This node schedules the accepted');
    return this.logs.filter(isTakeOver).length;
  }

  get pid(): number {
    return this.#process!.pid;
  }

  /** `change` replaces parts of the config for this process. */
  async start(change: object = {}): Promise<void> {
    const { projectDir, peers = {}, env } = this.#options;
    const config = { ...this.#options.config, ...change };
    const staticTokens = { [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' } };
    const { hostname, port } = new URL(this.url);
    const service = spawnService({
      name: 'gateway',
      start: {
        config: PlatformConfig.parse({
          cluster: { enabled: config.store !== undefined },
          ...config,
          gateway: { staticTokens, ...config.gateway },
        }),
        profile: 'development',
        projectDir,
        configFile: null,
        dataDir: this.dataDir,
        keys: TEST_KEYS,
        operator: TEST_OPERATOR,
        peers,
        listen: { host: hostname, port: Number(port) },
        logLevel: 'info',
      },
      env: { ...process.env, ...env, GENERATION: `${this.name}-${++this.#starts}` },
      onLines: (lines) => {
        for (const line of lines.toString().split('\n')) if (line !== '') this.logs.push(JSON.parse(line));
      },
      now: Date.now,
    });
    this.#process = service;
    // The supervisor keeps the port of a killed gateway. Here it closes, as if the machine were gone.
    (await service.listening).listener?.close();
  }

  /** Ends the process with SIGKILL, also if it is stopped by SIGSTOP. */
  async kill(): Promise<void> {
    const service = this.#process;
    this.#process = undefined;
    service?.kill();
    await service?.exited;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.pid, signal);
  }

  /** Resolves when the process has ended by itself. */
  async ended(): Promise<{ code: number | null }> {
    const { code } = await this.#process!.exited;
    return { code };
  }
}
