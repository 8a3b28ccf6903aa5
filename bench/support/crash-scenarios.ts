import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import { identify } from '../../src/supervisor/process-identity.ts';
import { type CrashPlatform, isAlive, untilReplaced } from './crash-platform.ts';

/** A way to crash a healthy platform; resolves with the milliseconds until it is healthy again. */
export interface CrashScenario {
  name: string;
  /** Limits the number of rounds of slow scenarios. */
  maxRounds?: number;
  strike(platform: CrashPlatform): Promise<number>;
}

export const CRASH_SCENARIOS: readonly CrashScenario[] = [
  ...SERVICE_NAMES.map((name) => ({ name: `kill -9 of ${name}`, strike: killService(name) })),
  { name: 'kill -9 of the supervisor, then up', strike: killSupervisor },
  { name: 'kill -9 of all six, then up', strike: killAll },
  { name: 'reboot: all processes gone, stale files, reused pids', strike: reboot },
  { name: 'two ups at once', strike: twoUps },
  { name: 'down while the gateway hangs, then up', maxRounds: 3, strike: slowStop },
];

/** The other services must be unaffected, and the port must stay the same. */
function killService(name: ServiceName): CrashScenario['strike'] {
  return async (platform) => {
    const before = await platform.status();
    const victim = before.services.find((service) => service.name === name)!;
    const others = before.services.filter((service) => service.name !== name).map(({ pid }) => pid);
    const startedAt = performance.now();
    process.kill(victim.pid!, 'SIGKILL');
    await untilReplaced(victim.url!, victim.pid!);
    const tookMs = performance.now() - startedAt;
    const after = await platform.untilHealthy();
    const rest = after.services.filter((service) => service.name !== name).map(({ pid }) => pid);
    mustHold(rest.join() === others.join(), `other services than ${name} were replaced`);
    // Resets the crash count: five crashes within a minute would be a crash loop.
    await platform.svc('restart', name);
    return tookMs;
  };
}

async function killSupervisor(platform: CrashPlatform): Promise<number> {
  const [supervisor, ...children] = await platform.pids();
  const startedAt = performance.now();
  process.kill(supervisor!, 'SIGKILL');
  return restartPlatform(platform, startedAt, children);
}

async function killAll(platform: CrashPlatform): Promise<number> {
  const pids = await platform.pids();
  const startedAt = performance.now();
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  return restartPlatform(platform, startedAt, pids);
}

/** After a power cut, pids are reused and half-written files remain. */
async function reboot(platform: CrashPlatform): Promise<number> {
  const pids = await platform.pids();
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  while (pids.some(isAlive)) await sleep(5);
  const run = join(platform.folder, '.svc', 'run');
  const other = { pid: process.pid, startedAt: `${identify(process.pid).startedAt}0` };
  const stale = {
    supervisor: other,
    socket: join(run, 'control.sock'),
    children: SERVICE_NAMES.map((name) => ({ name, ...other })),
  };
  await writeFile(platform.runFile, JSON.stringify(stale));
  await writeFile(`${platform.runFile}.4711.new`, '{"half');
  await writeFile(join(run, 'supervisor.owner'), JSON.stringify({ pid: process.pid, label: 'supervisor' }));
  return restartPlatform(platform, performance.now(), pids);
}

async function twoUps(platform: CrashPlatform): Promise<number> {
  await platform.svc('down');
  const startedAt = performance.now();
  const both = await Promise.all([platform.svc('up', '-d'), platform.svc('up', '-d')]);
  const tookMs = performance.now() - startedAt;
  mustHold(
    both.every(({ exitCode }) => exitCode === 0),
    'one of two starts failed',
  );
  mustHold(new Set(both.map(({ json }) => json.result.pid)).size === 1, 'two starts made two platforms');
  await platform.untilHealthy();
  return tookMs;
}

async function slowStop(platform: CrashPlatform): Promise<number> {
  const { services } = await platform.status();
  const pids = await platform.pids();
  const gateway = services.find(({ name }) => name === 'gateway')!;
  const startedAt = performance.now();
  process.kill(gateway.pid!, 'SIGSTOP');
  await platform.svc('down');
  return restartPlatform(platform, startedAt, pids);
}

/** `svc up -d` must start one healthy set, with no process of the previous one left. */
async function restartPlatform(
  platform: CrashPlatform,
  startedAt: number,
  former: number[],
): Promise<number> {
  const { exitCode, json } = await platform.svc('up', '-d');
  const tookMs = performance.now() - startedAt;
  mustHold(exitCode === 0, `up failed: ${JSON.stringify(json.error)}`);
  mustHold(
    !json.result.alreadyRunning && !json.result.firstStart,
    'up found another platform, or created new keys',
  );
  mustHold(
    !former.some((pid) => pid !== process.pid && isAlive(pid)),
    'processes of the previous set are alive',
  );
  await platform.untilHealthy();
  return tookMs;
}

function mustHold(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
