import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { familyOf } from '../process-usage.ts';

/** Short periods, because a process that has used its share stands still until the next one. */
const PERIOD_US = 20_000;
/** Weight beside other programs of the machine, which would otherwise get a share for each of their processes. */
const WEIGHT = { v1: ['cpu.shares', '16384'], v2: ['cpu.weight', '1600'] } as const;
const ROOTS = { v1: '/sys/fs/cgroup/cpu', v2: '/sys/fs/cgroup' } as const;

/** The benchmark and all that it starts, in one control group with a large share of the machine. */
export class ControlGroups {
  readonly version: 'v1' | 'v2';
  readonly #home: string;
  readonly #parent: string;
  readonly #limits = new Set<string>();

  private constructor(version: 'v1' | 'v2') {
    this.version = version;
    this.#home = join(ROOTS[version], ownGroup(version));
    this.#parent = join(this.#home, `svc-bench-${process.pid}`);
    if (version === 'v2') writeFileSync(join(this.#home, 'cgroup.subtree_control'), '+cpu');
    mkdirSync(this.#parent);
    writeFileSync(join(this.#parent, WEIGHT[version][0]), WEIGHT[version][1]);
    if (version === 'v2') writeFileSync(join(this.#parent, 'cgroup.subtree_control'), '+cpu');
    // With version 2, only groups without children may have members.
    mkdirSync(this.#main);
    move(process.pid, this.#main);
  }

  /** Undefined if the machine has none that this user may change. */
  static open(): ControlGroups | undefined {
    try {
      return new ControlGroups(existsSync(join(ROOTS.v1, 'cpu.cfs_quota_us')) ? 'v1' : 'v2');
    } catch (error) {
      console.error(`CPU time cannot be limited: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** Limits a process, its running children and all that they start later to a share of one core. */
  limit(pid: number, cores: number): void {
    const folder = join(this.#parent, `limit-${pid}`);
    mkdirSync(folder);
    this.#limits.add(folder);
    const quotaUs = Math.round(cores * PERIOD_US);
    if (this.version === 'v1') {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), String(quotaUs));
    } else writeFileSync(join(folder, 'cpu.max'), `${quotaUs} ${PERIOD_US}`);
    for (const member of familyOf(pid)) move(member, folder);
  }

  /** Ends all limits. */
  liftLimits(): void {
    for (const folder of this.#limits) empty(folder, this.#main);
    this.#limits.clear();
  }

  close(): void {
    this.liftLimits();
    empty(this.#main, this.#home);
    rmdirSync(this.#parent);
  }

  get #main(): string {
    return join(this.#parent, 'main');
  }
}

/** Path of this process's group below the mount point. */
function ownGroup(version: 'v1' | 'v2'): string {
  const lines = readFileSync('/proc/self/cgroup', 'utf8');
  const line = version === 'v1' ? /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m : /^0::(.*)$/m;
  return line.exec(lines)?.[1] ?? '/';
}

/** Moves the members of a group to another one and removes it. */
function empty(folder: string, to: string): void {
  const members = readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
  for (const member of members) move(Number(member), to);
  rmdirSync(folder);
}

/** A process may end before it is moved. */
function move(pid: number, folder: string): void {
  try {
    writeFileSync(join(folder, 'cgroup.procs'), String(pid));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
