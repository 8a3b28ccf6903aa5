import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startRun } from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import type { RunFile } from '../../../src/supervisor/run-file.ts';
import { type CrashPlatform, createCrashPlatform } from '../crash-platform.ts';
import { KEYS } from './nodes.ts';

/** `process`: the workflow service of a node. `machine`: all processes of a node, which stays away. */
export type Kill = 'process' | 'machine';

const TOKEN = 'token-of-the-bench';
const POLL_MS = 20;

/** A server that never answers the first call of a path. */
class Held {
  readonly #calls = new Map<string, number>();
  readonly #server = createServer((request, response) => {
    const path = request.url!;
    const nth = (this.#calls.get(path) ?? 0) + 1;
    this.#calls.set(path, nth);
    if (nth > 1) response.end('{}');
  });

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async untilCalled(path: string, times: number): Promise<void> {
    while ((this.#calls.get(path) ?? 0) < times) await sleep(POLL_MS);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Two whole nodes. Runs of a killed process continue on either of them. */
export class TakeoverNodes {
  readonly #database: pg.Pool;
  readonly #nodes: CrashPlatform[] = [];
  readonly #held = new Held();
  #runs = 0;

  private constructor(storeUrl: string) {
    this.#database = new pg.Pool({ connectionString: storeUrl, max: 1 });
  }

  static async start(storeUrl: string): Promise<TakeoverNodes> {
    const nodes = new TakeoverNodes(storeUrl);
    try {
      await nodes.#held.listen();
      for (let n = 0; n < 2; n++) nodes.#nodes.push(await startNode(storeUrl));
      return nodes;
    } catch (error) {
      await nodes.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#held.close();
    for (const node of this.#nodes) await node.dispose();
    await this.#database.end();
  }

  /**
   * Kills a process or node that executes a step. Resolves with the time in seconds until the step was called again, and
   * only once the node is back.
   */
  async takeOver(kill: Kill, number: number): Promise<number> {
    const path = `/${++this.#runs}`;
    const victim = await this.#startRun(this.#nodes[number % this.#nodes.length]!, path);
    const { supervisor, children } = JSON.parse(await readFile(victim.runFile, 'utf8')) as RunFile;
    const workflow = children.filter(({ name }) => name === 'workflow');
    const victims = kill === 'process' ? workflow : [supervisor, ...children];
    for (const { pid } of victims) process.kill(pid, 'SIGKILL');
    const killedAt = performance.now();
    await this.#held.untilCalled(path, 2);
    const tookMs = performance.now() - killedAt;
    if (kill === 'machine') await svc(victim, 'up', '-d');
    await victim.untilHealthy(120_000);
    return tookMs / 1000;
  }

  /** Starts a run and waits for its step. Returns the node that executes it. */
  async #startRun(node: CrashPlatform, path: string): Promise<CrashPlatform> {
    const { services } = await node.status();
    const client = createClient({
      ...{ url: services.find(({ name }) => name === 'gateway')!.url!, peer: 'gateway' },
      headers: () => ({ authorization: `Bearer ${TOKEN}` }),
    });
    const step = { uses: 'http', idempotent: true, with: { url: this.#held.url(path) } };
    const definition = { id: 'held', jobs: { main: { steps: [step] } } };
    const { run } = await client.call(startRun, { body: { definition } });
    await this.#held.untilCalled(path, 1);
    const { rows } = await this.#database.query(
      'select boot.instance from svc.run join svc.boot using (fence) where run.id = $1',
      [run.id],
    );
    for (const each of this.#nodes) {
      const instance = await readFile(join(each.folder, '.svc', 'instance'), 'utf8');
      if (instance.trim() === rows[0].instance) return each;
    }
    throw new Error(`No node executes run ${run.id}.`);
  }
}

async function startNode(storeUrl: string): Promise<CrashPlatform> {
  const node = await createCrashPlatform(packageRoot, {
    store: { url: storeUrl },
    cluster: { enabled: true },
    adapters: { vectorStore: null },
    gateway: {
      ...{ port: 0, publicUrl: 'http://svc.example' },
      staticTokens: { [TOKEN]: { hostId: 'operator', namespaceId: 'default' } },
    },
    workflow: { port: 0, httpAllow: ['127.0.0.1'] },
  });
  await writeFile(join(node.folder, '.env'), KEYS, { mode: 0o600 });
  await svc(node, 'migrate', '--yes');
  await svc(node, 'up', '-d');
  return node;
}

async function svc(node: CrashPlatform, ...args: string[]): Promise<void> {
  const { exitCode, json } = await node.svc(...args);
  if (exitCode !== 0) throw new Error(`svc ${args.join(' ')} failed: ${JSON.stringify(json)}`);
}
