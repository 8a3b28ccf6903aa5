import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atEnd } from './at-end.ts';
import { tempDir } from './daemon.ts';
import type { CliReply } from './platform.ts';
import { freePort } from './ports.ts';
import { userEnvironment } from './user-environment.ts';

/** A node with a data folder and a port of its own, whose build can be replaced while it is stopped. */
export class UpgradeNode {
  readonly url: string;
  readonly #project: string;
  readonly #env: NodeJS.ProcessEnv;
  #release: string;

  private constructor(project: string, release: string, { port, home }: { port: number; home: string }) {
    this.#project = project;
    this.#release = release;
    this.url = `http://127.0.0.1:${port}`;
    this.#env = {
      ...userEnvironment(),
      SVC_HOME: home,
      SVC_ADVERTISE_URL: this.url,
      SVC_GATEWAY_PORT: String(port),
    };
  }

  static async create(project: string, release: string): Promise<UpgradeNode> {
    const node = new UpgradeNode(project, release, { port: await freePort(), home: await tempDir() });
    atEnd(() => node.down());
    return node;
  }

  /** Makes all later commands those of another build. */
  use(release: string): void {
    this.#release = release;
  }

  async up(): Promise<void> {
    const { exitCode, envelope, stderr } = await this.svc('up', '-d');
    if (exitCode !== 0) throw new Error(`svc up -d failed: ${JSON.stringify(envelope)}\n${stderr}`);
  }

  async down(): Promise<CliReply> {
    return this.svc('down');
  }

  /** Runs a command of the node's build. */
  async svc(...args: string[]): Promise<CliReply> {
    const file = join(this.#release, 'bin/svc');
    const options = { cwd: this.#project, env: this.#env, maxBuffer: 64 * 1024 * 1024 };
    const { stdout, stderr, exitCode } = await promisify(execFile)(
      process.execPath,
      [file, ...args, '--json'],
      options,
    ).then(
      (done) => ({ ...done, exitCode: 0 }),
      (error) => ({
        stdout: String(error.stdout),
        stderr: String(error.stderr),
        exitCode: error.code as number,
      }),
    );
    return { exitCode, stderr, envelope: JSON.parse(stdout) };
  }
}
