import { execFileSync, spawnSync } from 'node:child_process';
import { onTestFinished } from 'vitest';

/** A machine of its own, as far as the network goes, at the other end of a cable. */
export interface Elsewhere {
  /** Our end of the cable: where what is to be reached from there listens. */
  address: string;
  /** Starts a program there: put this before its command. */
  within: readonly string[];
  /** Pulls the cable at that end: nothing arrives, and nobody is told. */
  unplug(): void;
  plugIn(): void;
}

/** Why the tests over a real network are skipped; undefined where they can run. */
export const networkMissing: string | undefined = missing();

function missing(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  if (spawnSync('ip', ['-Version'], { stdio: 'ignore' }).status !== 0)
    return 'ip is not installed (apt-get install iproute2)';
  const name = `svc-probe-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' });
  spawnSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
  return made.status === 0 ? undefined : `network namespaces cannot be made here: ${made.stderr.trim()}`;
}

if (networkMissing !== undefined) console.warn(`Tests over a real network are skipped: ${networkMissing}`);

/** A network namespace joined to ours by a veth pair; gone when the test ends. */
export function createElsewhere(): Elsewhere {
  const id = process.pid % 100_000;
  const name = `svc-test-${id}`;
  const [ours, theirs] = [`svc${id}a`, `svc${id}b`];
  const network = `10.203.${id % 250}`;
  const ip = (...args: string[]): void =>
    void execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  ip('netns', 'add', name);
  onTestFinished(() => {
    // The pair goes with either end.
    spawnSync('ip', ['link', 'del', ours], { stdio: 'ignore' });
    ip('netns', 'del', name);
  });
  ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs, 'netns', name);
  ip('addr', 'add', `${network}.1/30`, 'dev', ours);
  ip('link', 'set', ours, 'up');
  ip('-n', name, 'addr', 'add', `${network}.2/30`, 'dev', theirs);
  ip('-n', name, 'link', 'set', 'lo', 'up');
  ip('-n', name, 'link', 'set', theirs, 'up');
  return {
    address: `${network}.1`,
    within: ['ip', 'netns', 'exec', name],
    unplug: () => ip('-n', name, 'link', 'set', theirs, 'down'),
    plugIn: () => ip('-n', name, 'link', 'set', theirs, 'up'),
  };
}
