import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/kit/files/paths.ts';
import type { AnyJson } from './any-json.ts';
import { FREE_PORTS } from './ports.ts';
import { userEnvironment } from './user-environment.ts';

const run = promisify(execFile);

/** The package whose `svc` is run: an installed one when SVC_TEST_PACKAGE names it, else this checkout's build. */
export const INSTALLED = process.env.SVC_TEST_PACKAGE ?? packageRoot;

export interface CliReply {
  exitCode: number;
  envelope: AnyJson;
  stderr: string;
}

export interface Platform {
  folder: string;
  /** Runs `bin/svc <args> --json` in the project folder. */
  svc(...args: string[]): Promise<CliReply>;
  /** `up -d`; resolves with the gateway's URL. */
  up(): Promise<string>;
  down(): Promise<void>;
  /** Ends what runs and removes the folder. */
  dispose(): Promise<void>;
}

/** A project folder of one's own for the platform as a user starts it: `bin/svc` with its built daemons. */
export async function createPlatform(config: Record<string, unknown> = {}): Promise<Platform> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-platform-'));
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...FREE_PORTS, ...config }));
  const env = userEnvironment();

  async function svc(...args: string[]): Promise<CliReply> {
    const file = join(INSTALLED, 'bin', 'svc');
    const finished = await run(file, [...args, '--json'], {
      cwd: folder,
      env,
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout, stderr }) => ({ stdout, stderr, exitCode: 0 }),
      (error) => ({
        stdout: String(error.stdout),
        stderr: String(error.stderr),
        exitCode: error.code as number,
      }),
    );
    const { stdout, stderr, exitCode } = finished;
    try {
      return { exitCode, stderr, envelope: JSON.parse(stdout) };
    } catch {
      throw new Error(
        `svc ${args.join(' ')} printed no JSON document: ${JSON.stringify({ stdout, stderr, exitCode })}`,
      );
    }
  }

  async function down(): Promise<void> {
    await svc('down');
  }

  return {
    folder,
    svc,
    async up() {
      const { exitCode, envelope, stderr } = await svc('up', '-d');
      if (exitCode !== 0) throw new Error(`svc up -d failed: ${JSON.stringify(envelope)}\n${stderr}`);
      const status = await svc('status');
      return status.envelope.result.services.find((service: { name: string }) => service.name === 'gateway')
        .url;
    },
    down,
    async dispose() {
      await down().catch(() => {});
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
