import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServiceName } from '../../src/contracts/index.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import type { AnyJson } from './any-json.ts';
import { atEnd } from './at-end.ts';
import { tempDir } from './daemon.ts';
import { userEnvironment } from './user-environment.ts';

/** Environment of all nodes of a cluster: the secrets that they share. */
export const CLUSTER_SECRETS = {
  SVC_MASTER_KEY: Buffer.alloc(32, 7).toString('base64url'),
  GATEWAY_JWT_SECRET: 'j'.repeat(40),
  GATEWAY_INTERNAL_SECRET: 'i'.repeat(40),
  SVC_OPERATOR_CLIENT_ID: 'operator-of-the-test',
  SVC_OPERATOR_CLIENT_SECRET: 'o'.repeat(40),
};

export interface SingleServiceOptions {
  project: string;
  args?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Words before `svc`, such as a program that starts a PID namespace. */
  prefix?: readonly string[];
}

/** One service, which `svc start` runs in a process of its own. */
export class SingleServiceProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  #stdout = '';
  #stderr = '';

  constructor(name: string, { project, args = [], env = {}, prefix = [] }: SingleServiceOptions) {
    const [command, ...words] = [...prefix, process.execPath, entryFile('cli'), 'start', name, ...args];
    this.child = spawn(command!, words, {
      cwd: project,
      env: { ...userEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout!.on('data', (text) => (this.#stdout += text));
    this.child.stderr!.on('data', (text) => (this.#stderr += text));
    this.exited = new Promise((resolve) =>
      this.child.once('close', (code, signal) => resolve({ code, signal })),
    );
    atEnd(() => {
      this.child.kill('SIGKILL');
      return this.exited;
    });
  }

  /** Log records on stdout so far. */
  get records(): AnyJson[] {
    return this.#stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as AnyJson);
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves with the URL when the service listens. Rejects if it exits before. */
  async listening(): Promise<string> {
    let isOver = false;
    void this.exited.then(() => {
      isOver = true;
    });
    for (;;) {
      const started = this.records.find(({ event }) => event === 'daemon.started');
      if (started) return started.evidence.url as string;
      if (isOver) throw new Error(`The service exited: ${this.#stdout}${this.#stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Creates a project folder with a config. */
export async function singleProject(config: object): Promise<string> {
  const folder = join(await tempDir(), 'project');
  await mkdir(folder);
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  return folder;
}

/** Starts a service and waits until it listens. */
export async function startSingle(
  name: ServiceName,
  options: SingleServiceOptions,
): Promise<SingleServiceProcess & { url: string }> {
  const service = new SingleServiceProcess(name, options);
  return Object.assign(service, { url: await service.listening() });
}
