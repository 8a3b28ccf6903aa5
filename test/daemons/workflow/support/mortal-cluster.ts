import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type CrashPlatform, createCrashPlatform } from '../../../../bench/support/crash-platform.ts';
import { createClient } from '../../../../src/http/index.ts';
import { packageRoot } from '../../../../src/kit/files/paths.ts';
import { isRunning, type ProcessIdentity } from '../../../../src/supervisor/process-identity.ts';
import type { RunFile } from '../../../../src/supervisor/run-file.ts';
import { atEnd } from '../../../support/at-end.ts';
import { freePort } from '../../../support/ports.ts';
import type { PostgresServer } from '../../../support/postgres.ts';
import { below, type Random } from '../../../support/random.ts';
import { CLUSTER_SECRETS } from '../../../support/single-service.ts';

type Client = ReturnType<typeof createClient>;

/**
 * `crash`: of the workflow service by SIGABRT. `node`: all processes. `absence`: the same, for longer than a lease. `hang`:
 * the workflow service stands still for longer than a lease.
 */
export type NodeDeath = 'gateway' | 'workflow' | 'crash' | 'supervisor' | 'node' | 'absence' | 'hang';

const DEATHS: readonly NodeDeath[] = [
  ...(['gateway', 'workflow', 'workflow', 'crash'] as const),
  ...(['supervisor', 'node', 'absence', 'hang'] as const),
];
const TOKEN = 'token-of-the-chaos-test';
/** Longer than a lease with the sweep that follows. */
const LONG_MS = 14_000;
/** The fifth crash within a minute is a crash loop, in which the supervisor waits. */
const MOST_CRASHES = 3;
/** A service that hung answers that the request took too long to arrive. */
const AWAY = /^(?:UPSTREAM_|SERVICE_|STORE_|REQUEST_TIMEOUT)/;

/** A node (`svc up -d`) with gateway and workflow service, of which any process may die. */
class MortalNode {
  readonly client: Client;
  readonly #platform: CrashPlatform;
  #crashes = 0;
  isDying = false;

  private constructor(platform: CrashPlatform, port: number) {
    this.#platform = platform;
    const headers = () => ({ authorization: `Bearer ${TOKEN}` });
    this.client = createClient({ url: `http://127.0.0.1:${port}`, peer: 'gateway', headers });
  }

  static async start(config: object): Promise<MortalNode> {
    const port = await freePort();
    const platform = await createCrashPlatform(packageRoot, {
      ...config,
      gateway: {
        ...{ port, publicUrl: 'http://svc.example', drainDelayMs: 0 },
        staticTokens: { [TOKEN]: { hostId: 'operator', namespaceId: 'default' } },
      },
    });
    atEnd(() => platform.dispose());
    const secrets = Object.entries(CLUSTER_SECRETS).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(join(platform.folder, '.env'), secrets.join(''), { mode: 0o600 });
    const node = new MortalNode(platform, port);
    await node.#up();
    return node;
  }

  /** Resolves when the node is back, or when its supervisor must restart the service. */
  async die(planned: NodeDeath): Promise<NodeDeath> {
    const isService = planned === 'gateway' || planned === 'workflow' || planned === 'crash';
    const how = isService && this.#crashes >= MOST_CRASHES ? 'node' : planned;
    if (how === 'gateway' || how === 'workflow') await this.#signal(how, 'SIGKILL');
    else if (how === 'crash') await this.#signal('workflow', 'SIGABRT');
    else if (how === 'hang') await this.#hang();
    else await this.#killSupervisor(how);
    return how;
  }

  async #signal(name: 'gateway' | 'workflow', signal: NodeJS.Signals): Promise<void> {
    this.#crashes++;
    for (const child of (await this.#runFile()).children) if (child.name === name) send(child, signal);
  }

  async #hang(): Promise<void> {
    const hung = (await this.#runFile()).children.filter(({ name }) => name === 'workflow');
    for (const child of hung) send(child, 'SIGSTOP');
    await pause(LONG_MS);
    for (const child of hung) send(child, 'SIGCONT');
    this.#crashes++;
  }

  async #killSupervisor(how: 'supervisor' | 'node' | 'absence'): Promise<void> {
    const { supervisor, children } = await this.#runFile();
    for (const one of how === 'supervisor' ? [supervisor] : [supervisor, ...children]) send(one, 'SIGKILL');
    if (how === 'absence') await pause(LONG_MS);
    await this.#up();
  }

  /** Repeats the start while PostgreSQL is away. */
  async #up(): Promise<void> {
    for (;;) {
      const { exitCode, json } = await this.#platform.svc('up', '-d', '--services', 'gateway,workflow');
      if (exitCode === 0) break;
      if (!AWAY.test(json.error.code)) throw new Error(JSON.stringify(json.error));
      await pause(200);
    }
    this.#crashes = 0;
  }

  async #runFile(): Promise<RunFile> {
    return JSON.parse(await readFile(this.#platform.runFile, 'utf8')) as RunFile;
  }
}

function send(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (isRunning(identity)) process.kill(identity.pid, signal);
}

/** Nodes that share a PostgreSQL, and die with it under their callers. At least one node is not dying. */
export class MortalCluster {
  readonly deaths: Partial<Record<NodeDeath | 'postgres', number>> = {};
  readonly #nodes: readonly MortalNode[];
  readonly #server: PostgresServer;
  readonly #random: Random;
  #isRestarting = false;
  #failure: unknown;

  private constructor(nodes: readonly MortalNode[], server: PostgresServer, random: Random) {
    this.#nodes = nodes;
    this.#server = server;
    this.#random = random;
  }

  static async start(
    size: number,
    server: PostgresServer,
    config: object,
    random: Random,
  ): Promise<MortalCluster> {
    const nodes: MortalNode[] = [];
    for (let n = 0; n < size; n++) nodes.push(await MortalNode.start(config));
    return new MortalCluster(nodes, server, random);
  }

  /** Repeats a call on random nodes until one answers. */
  async call<Reply>(make: (client: Client) => Promise<Reply>): Promise<Reply> {
    for (;;) {
      if (this.#failure) throw this.#failure;
      try {
        return await make(this.#nodes[below(this.#random, this.#nodes.length)]!.client);
      } catch (error) {
        if (!AWAY.test((error as { code?: string }).code ?? '')) throw error;
        await pause(50);
      }
    }
  }

  /** Begins deaths until the time has passed. Resolves when all nodes are back. */
  async dieFor(ms: number): Promise<void> {
    const until = performance.now() + ms;
    const dying = new Set<Promise<void>>();
    while (performance.now() < until && !this.#failure) {
      const death = this.#dieOnce().catch((error) => {
        this.#failure ??= error;
      });
      dying.add(death);
      void death.then(() => dying.delete(death));
      await pause(below(this.#random, 4000));
    }
    await Promise.all(dying);
    if (this.#failure) throw this.#failure;
  }

  async #dieOnce(): Promise<void> {
    if (below(this.#random, 10) === 0) return this.#restartPostgres();
    const idle = this.#nodes.filter(({ isDying }) => !isDying);
    const node = idle[below(this.#random, idle.length)];
    const planned = DEATHS[below(this.#random, DEATHS.length)]!;
    if (!node || idle.length === 1) return;
    node.isDying = true;
    this.#count(await node.die(planned));
    node.isDying = false;
  }

  async #restartPostgres(): Promise<void> {
    if (this.#isRestarting) return;
    this.#isRestarting = true;
    await this.#server.stop('immediate');
    await pause(below(this.#random, 3000));
    await this.#server.up();
    this.#isRestarting = false;
    this.#count('postgres');
  }

  #count(how: NodeDeath | 'postgres'): void {
    this.deaths[how] = (this.deaths[how] ?? 0) + 1;
  }
}
