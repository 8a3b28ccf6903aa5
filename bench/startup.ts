import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../src/kit/files/paths.ts';
import { type BenchResult, median, round } from './support/result.ts';

const execute = promisify(execFile);

const COMMAND_ROUNDS = 15;
const PLATFORM_ROUNDS = 5;
/** Oldest Node supported without the launcher starting another one. */
const MIN_NODE = 22;
const FREE_PORTS = Object.fromEntries(
  ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [name, { port: 0 }]),
);

/** Measures commands, the start of the platform, and its idle memory. */
export async function run(flags: ReadonlySet<string> = new Set()): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const launcher = join(packageRoot, 'bin', 'svc');
  const svc = (...args: string[]) => execute(process.execPath, [launcher, ...args], { cwd: folder });
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(FREE_PORTS));
  try {
    // Builds if needed, and fills the compile cache for later starts.
    await svc('up', '-d');
    await svc('down');
    await svc('up', '-d');
    const started = await residentMb(svc);
    const commands = await timedInterleaved(COMMAND_ROUNDS, SIMPLE_COMMANDS, (command) =>
      svc(...command.split(' ')),
    );
    const ids = await timed(COMMAND_ROUNDS, () => svc('complete', '--', 'plugins', 'show', ''));
    const words = await timed(COMMAND_ROUNDS, () => svc('complete', '--', 'webhooks', ''));
    const settled = await residentMb(svc);
    await svc('down');
    const help = await timed(COMMAND_ROUNDS, () => svc('--help'));
    const bare = await timed(COMMAND_ROUNDS, () => execute(process.execPath, ['-e', '0']));
    const others = flags.has('--with-others') ? await measureOthers(folder) : [];
    const olderNode = await measureOlderNode(launcher, folder);
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
        ...SIMPLE_COMMANDS.map((command, index) => ({
          what: `svc ${command}`,
          median: ms(commands[index]!),
          aim: 'under 120 ms',
        })),
        { what: 'completion of words', median: ms(words), aim: '' },
        { what: 'completion of live ids', median: ms(ids), aim: 'under 150 ms' },
        ...olderNode,
        ...others,
        { what: 'svc up -d, from stopped to all ready', median: ms(up), aim: 'under 1500 ms' },
        { what: 'svc down, until all have stopped', median: ms(down), aim: '' },
        {
          what: 'resident: five services, after start / settled',
          median: `${started.daemons} / ${settled.daemons} MB`,
          aim: 'under 450 MB',
        },
        { what: 'resident: supervisor', median: `${settled.supervisor} MB`, aim: '' },
      ],
      note: `Medians of ${COMMAND_ROUNDS} (commands) and ${PLATFORM_ROUNDS} (platform) runs through bin/svc in a checkout; simple commands are interleaved. Resident memory (VmRSS) right after svc up -d and some seconds later; shared pages count in each process.`,
    };
  } finally {
    await svc('down').catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** Commands with a single request to the gateway or the services. */
const SIMPLE_COMMANDS = [
  'status',
  'whoami',
  'hosts list',
  'plugins list',
  'webhooks list',
  'clients list',
] as const;

/** Medians of interleaved runs, so that disturbances affect all equally. */
async function timedInterleaved<Each>(
  rounds: number,
  each: readonly Each[],
  run: (each: Each) => Promise<unknown>,
): Promise<number[]> {
  const times = each.map((): number[] => []);
  for (let turn = 0; turn < rounds; turn++) {
    for (const [index, one] of each.entries()) {
      const startedAt = performance.now();
      await run(one);
      times[index]!.push(performance.now() - startedAt);
    }
  }
  return times.map(median);
}

/** On an unsupported Node, the launcher starts the checkout's own Node; measures that cost. */
async function measureOlderNode(launcher: string, cwd: string): Promise<BenchResult['rows']> {
  const own = join(packageRoot, 'node_modules');
  const folders = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.startsWith(own));
  for (const program of folders.map((path) => join(path, 'node'))) {
    const found = await execute(program, ['-p', 'process.versions.node']).catch(() => null);
    if (!found) continue;
    const version = found.stdout.trim();
    if (Number(version.split('.')[0]) >= MIN_NODE) continue;
    const help = await timed(COMMAND_ROUNDS, () => execute(program, [launcher, '--help'], { cwd }));
    return [{ what: `svc --help, started by Node ${version}`, median: ms(help), aim: '' }];
  }
  return [];
}

/** Comparable CLIs, installed by npm. */
const OTHERS = [
  { name: 'pm2', args: ['ls'] },
  { name: 'wrangler', args: ['--version'] },
];

/** Installs into a temporary folder and runs only the commands. */
async function measureOthers(folder: string): Promise<BenchResult['rows']> {
  const at = join(folder, 'others');
  await mkdir(at);
  await writeFile(join(at, 'package.json'), '{"private": true}');
  const env = {
    ...process.env,
    HOME: at,
    PM2_HOME: join(at, '.pm2'),
    WRANGLER_SEND_METRICS: 'false',
    CI: '1',
  };
  const options = { cwd: at, env };
  await execute(
    'npm',
    ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...OTHERS.map(({ name }) => name)],
    options,
  );
  const rows: BenchResult['rows'] = [];
  for (const { name, args } of OTHERS) {
    const { version } = JSON.parse(
      await readFile(join(at, 'node_modules', name, 'package.json'), 'utf8'),
    ) as { version: string };
    const program = join(at, 'node_modules', '.bin', name);
    // The first pm2 command starts its daemon; later ones only query it.
    await execute(program, args, options);
    const took = await timed(COMMAND_ROUNDS, () => execute(program, args, options));
    rows.push({ what: `${name} ${args.join(' ')} (${version})`, median: ms(took), aim: '' });
  }
  await execute(join(at, 'node_modules', '.bin', 'pm2'), ['kill'], options);
  return rows;
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
