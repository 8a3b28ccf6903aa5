import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../src/kit/paths.ts';
import { type BenchResult, median, round } from './support/result.ts';

const execute = promisify(execFile);

const COMMAND_ROUNDS = 15;
const PLATFORM_ROUNDS = 5;
/** That the program itself runs on; the launcher runs on older ones. */
const OLDEST_NODE = 22;
const FREE_PORTS = Object.fromEntries(
  ['gateway', 'rest', 'workflow', 'marketplace', 'state'].map((name) => [name, { port: 0 }]),
);

/** How long commands take and the platform needs to start, and what it holds in memory once it idles. */
export async function run(flags: ReadonlySet<string> = new Set()): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const launcher = join(packageRoot, 'bin', 'svc');
  const svc = (...args: string[]) => execute(process.execPath, [launcher, ...args], { cwd: folder });
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(FREE_PORTS));
  try {
    // Builds where the build is not current, and leaves the compiled code that every later start finds.
    await svc('up', '-d');
    await svc('down');
    await svc('up', '-d');
    const started = await residentMb(svc);
    const commands = await timedInTurns(COMMAND_ROUNDS, SIMPLE_COMMANDS, (command) =>
      svc(...command.split(' ')),
    );
    const ids = await timed(COMMAND_ROUNDS, () => svc('complete', '--', 'plugins', 'show', ''));
    const words = await timed(COMMAND_ROUNDS, () => svc('complete', '--', 'webhooks', ''));
    const settled = await residentMb(svc);
    await svc('down');
    const help = await timed(COMMAND_ROUNDS, () => svc('--help'));
    const bare = await timed(COMMAND_ROUNDS, () => execute(process.execPath, ['-e', '0']));
    const others = flags.has('--with-others') ? await measureOthers(folder) : [];
    const older = await measureOlderNode(launcher, folder);
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
        ...older,
        ...others,
        { what: 'svc up -d, from stopped to all ready', median: ms(up), aim: 'under 1500 ms' },
        { what: 'svc down, to all ended', median: ms(down), aim: '' },
        {
          what: 'resident: five services, just started / settled',
          median: `${started.daemons} / ${settled.daemons} MB`,
          aim: 'under 450 MB',
        },
        { what: 'resident: supervisor', median: `${settled.supervisor} MB`, aim: '' },
      ],
      note: `Medians of ${COMMAND_ROUNDS} (commands) and ${PLATFORM_ROUNDS} (platform) runs through bin/svc in a checkout; simple commands in turns. Resident memory (VmRSS) right after svc up -d, and some seconds later; pages that processes share count in each.`,
    };
  } finally {
    await svc('down').catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
}

/** What asks the gateway, or all services, for one thing. */
const SIMPLE_COMMANDS = [
  'status',
  'whoami',
  'hosts list',
  'plugins list',
  'webhooks list',
  'clients list',
] as const;

/** The median of each, one after the other in every round: what disturbs one disturbs them all. */
async function timedInTurns<Each>(
  rounds: number,
  each: readonly Each[],
  run: (each: Each) => Promise<unknown>,
): Promise<number[]> {
  const took = each.map((): number[] => []);
  for (let turn = 0; turn < rounds; turn++) {
    for (const [index, one] of each.entries()) {
      const startedAt = performance.now();
      await run(one);
      took[index]!.push(performance.now() - startedAt);
    }
  }
  return took.map(median);
}

/** Where the launcher finds a Node that is too old, it starts the checkout's own: what that costs. */
async function measureOlderNode(launcher: string, cwd: string): Promise<BenchResult['rows']> {
  const own = join(packageRoot, 'node_modules');
  const folders = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.startsWith(own));
  for (const program of folders.map((path) => join(path, 'node'))) {
    const found = await execute(program, ['-p', 'process.versions.node']).catch(() => null);
    if (!found) continue;
    const version = found.stdout.trim();
    if (Number(version.split('.')[0]) >= OLDEST_NODE) continue;
    const help = await timed(COMMAND_ROUNDS, () => execute(program, [launcher, '--help'], { cwd }));
    return [{ what: `svc --help, started by Node ${version}`, median: ms(help), aim: '' }];
  }
  return [];
}

/** Command lines of the same kind, as npm installs them. */
const OTHERS = [
  { name: 'pm2', args: ['ls'] },
  { name: 'wrangler', args: ['--version'] },
];

/** Fetched into a folder that goes with the benchmark; nothing of it is started but the command. */
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
    // The first pm2 command starts its daemon, which later ones only ask.
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
