import { readFile } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import {
  type CrashPlatform,
  createCrashPlatform,
  untilReplaced,
} from '../../bench/support/crash-platform.ts';
import { createClient } from '../../src/http/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import type { RunFile } from '../../src/supervisor/run-file.ts';
import { type Death, type Lives, type Mortal, planDeaths } from '../daemons/workflow/support/deaths.ts';
import { RetryingClient } from '../daemons/workflow/support/retrying-client.ts';
import { freePort } from '../support/ports.ts';
import type { Random } from '../support/random.ts';
import { REACH_OUTSIDE } from './kinds/project.ts';

type Victim = 'gateway' | 'workflow';
/** `crash`: of the workflow service by SIGABRT. `supervisor`: killed, and `svc up` starts another. */
export type PlatformDeath = Victim | 'both' | 'crash' | 'restart' | 'supervisor';

const VICTIMS: Record<Exclude<PlatformDeath, 'restart' | 'supervisor'>, readonly Victim[]> = {
  gateway: ['gateway'],
  workflow: ['workflow'],
  both: ['gateway', 'workflow'],
  crash: ['workflow'],
};
/** The fifth within a minute is a crash loop, in which the supervisor waits. */
const MOST_CRASHES = 3;
const TOKEN = 'token-of-the-chaos-test';

export function planPlatformDeaths(random: Random, lives: Lives): Death<PlatformDeath>[] {
  return planDeaths(random, lives, {
    all: ['gateway', 'workflow', 'both', 'crash', 'restart', 'supervisor'],
    rest: ['gateway', 'workflow', 'both', 'both', 'restart', 'supervisor'],
  });
}

/** The platform of a project as a user starts it; its gateway, workflow service and supervisor die under their callers. */
export class MortalPlatform implements Mortal<PlatformDeath> {
  readonly client: RetryingClient;
  readonly #platform: CrashPlatform;
  readonly #urls: Readonly<Record<Victim, string>>;
  #crashes = 0;

  private constructor(platform: CrashPlatform, urls: Record<Victim, string>) {
    this.#platform = platform;
    this.#urls = urls;
    const headers = () => ({ authorization: `Bearer ${TOKEN}` });
    const gateway = createClient({ url: urls.gateway, peer: 'gateway', headers });
    this.client = new RetryingClient((endpoint, input) => gateway.call(endpoint, input));
  }

  /** Resolves once every service answers. */
  static async start(write: (folder: string) => Promise<void>): Promise<MortalPlatform> {
    const ports = { gateway: await freePort(), workflow: await freePort() };
    const staticTokens = { [TOKEN]: { hostId: 'operator', namespaceId: 'default' } };
    const platform = await createCrashPlatform(packageRoot, {
      gateway: { port: ports.gateway, staticTokens },
      workflow: { port: ports.workflow, ...REACH_OUTSIDE },
    });
    onTestFinished(() => platform.dispose());
    await write(platform.folder);
    await run(platform, 'up', '-d');
    await platform.untilHealthy();
    return new MortalPlatform(platform, {
      gateway: `http://127.0.0.1:${ports.gateway}`,
      workflow: `http://127.0.0.1:${ports.workflow}`,
    });
  }

  async die(way: PlatformDeath): Promise<void> {
    if (way === 'restart') return this.#restart();
    if (way === 'supervisor') return this.#killSupervisor();
    await this.#kill(VICTIMS[way], way === 'crash' ? 'SIGABRT' : 'SIGKILL');
    if (++this.#crashes === MOST_CRASHES) await this.#restart();
  }

  async #kill(names: readonly Victim[], signal: NodeJS.Signals): Promise<void> {
    const { children } = await this.#runFile();
    const victims = children.filter(({ name }) => names.some((victim) => victim === name));
    for (const { pid } of victims) process.kill(pid, signal);
    await Promise.all(victims.map(({ name, pid }) => untilReplaced(this.#urls[name as Victim], pid)));
  }

  /** In order, one after the other; the supervisor forgets their crashes. */
  async #restart(): Promise<void> {
    await run(this.#platform, 'restart', 'workflow');
    await run(this.#platform, 'restart', 'gateway');
    this.#crashes = 0;
  }

  async #killSupervisor(): Promise<void> {
    process.kill((await this.#runFile()).supervisor.pid, 'SIGKILL');
    await run(this.#platform, 'up', '-d');
    this.#crashes = 0;
  }

  async #runFile(): Promise<RunFile> {
    return JSON.parse(await readFile(this.#platform.runFile, 'utf8')) as RunFile;
  }
}

async function run(platform: CrashPlatform, ...args: string[]): Promise<void> {
  const { exitCode, json } = await platform.svc(...args);
  if (exitCode !== 0) throw new Error(`svc ${args.join(' ')} failed: ${JSON.stringify(json.error)}`);
}
