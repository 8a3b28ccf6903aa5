import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../src/kit/paths.ts';
import { type BenchResult, median, round } from './support/result.ts';

const execute = promisify(execFile);

const COMMAND_ROUNDS = 15;
const PLATFORM_ROUNDS = 5;
const FREE_PORTS = Object.fromEntries(
  ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [name, { port: 0 }]),
);

/** How long commands take and the platform needs to start, and what it holds in memory once it idles. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const launcher = join(packageRoot, 'bin', 'svc');
  const svc = (...args: string[]) => execute(process.execPath, [launcher, ...args], { cwd: folder });
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(FREE_PORTS));
  try {
    // Builds where the build is not current, and leaves the compiled code that every later start finds.
    await svc('up', '-d');
    const status = await timed(COMMAND_ROUNDS, () => svc('status'));
    const memory = await residentMb(svc);
    await svc('down');
    const help = await timed(COMMAND_ROUNDS, () => svc('--help'));
    const bare = await timed(COMMAND_ROUNDS, () => execute(process.execPath, ['-e', '0']));
    const up = await timed(
      PLATFORM_ROUNDS,
      () => svc('up', '-d'),
      () => svc('down'),
    );
    const down = await timed(
      PLATFORM_ROUNDS,
      () => svc('down'),
      () => Promise.resolve(),
      () => svc('up', '-d'),
    );
    return {
      name: 'Start-up',
      rows: [
        { what: 'node -e 0', median: ms(bare), aim: '' },
        { what: 'svc --help', median: ms(help), aim: 'under 60 ms' },
        { what: 'svc status (running)', median: ms(status), aim: 'under 120 ms' },
        { what: 'svc up -d, from stopped to all ready', median: ms(up), aim: 'under 1500 ms' },
        { what: 'svc down, to all ended', median: ms(down), aim: '' },
        { what: 'resident: five daemons', median: `${memory.daemons} MB`, aim: 'under 450 MB' },
        { what: 'resident: supervisor', median: `${memory.supervisor} MB`, aim: '' },
      ],
      note: `Medians of ${COMMAND_ROUNDS} (commands) and ${PLATFORM_ROUNDS} (platform) runs through bin/svc in a checkout. Resident memory (VmRSS) just after the start; pages that processes share count in each.`,
    };
  } finally {
    await svc('down').catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

async function timed(
  rounds: number,
  run: () => Promise<unknown>,
  after: () => Promise<unknown> = () => Promise.resolve(),
  before: () => Promise<unknown> = () => Promise.resolve(),
): Promise<number> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await before();
    const startedAt = performance.now();
    await run();
    took.push(performance.now() - startedAt);
    await after();
  }
  return median(took);
}

async function residentMb(svc: (...args: string[]) => Promise<{ stdout: string }>) {
  const { stdout } = await svc('status', '--json');
  const { pid, services } = JSON.parse(stdout).result as { pid: number; services: Array<{ pid: number }> };
  const sum = (pids: number[]): number => round(pids.reduce((total, each) => total + rssKb(each), 0) / 1024);
  return { supervisor: sum([pid]), daemons: sum(services.map((service) => service.pid)) };
}

function rssKb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN);
}

const ms = (value: number): string => `${round(value)} ms`;
