import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../../kit/data/bytes.ts';
import { packageRoot } from '../../../kit/files/paths.ts';
import { formatDuration, seconds } from '../../../kit/time/duration.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

/** First Node version whose permission model restricts the network. */
const NODE_WITH_NETWORK_PERMISSION = 25;
const WARN_FREE_BYTES = 1024 ** 3;
const MIN_FREE_BYTES = 100 * 1024 ** 2;
const MIN_FREE_INODES = 1000;
const CLOCK_TOLERANCE_MS = seconds(5);

export function checkNode(): Fact[] {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const required = engines.node.replace(/^\D+/, '');
  const actual = process.versions.node;
  if (actual.localeCompare(required, 'en', { numeric: true }) < 0)
    return [
      failure(
        `Node ${actual} is too old; svc needs ${required}.`,
        'Install a current Node: https://nodejs.org',
      ),
    ];
  if (Number(actual.split('.')[0]) >= NODE_WITH_NETWORK_PERMISSION) return [fine(`Node ${actual}`)];
  return [
    warning(
      `The permission model of Node ${actual} does not restrict the network. Without bubblewrap, a plugin can open connections that its manifest does not grant.`,
      `Use Node ${NODE_WITH_NETWORK_PERMISSION} or newer, or install bubblewrap.`,
    ),
  ];
}

export function checkDisk({ folder }: CheckTarget): Fact[] {
  const at = nearestFolder(folder.root);
  const { bavail, bsize, ffree, files } = statfsSync(at);
  const free = bavail * bsize;
  const remedy = 'Free some space. svc config get retention shows the retention settings.';
  if (files > 0 && ffree < MIN_FREE_INODES)
    return [failure(`Only ${ffree} more files can be created in ${at}.`, remedy)];
  if (free < MIN_FREE_BYTES)
    return [failure(`Only ${formatBytes(free)} are free in ${at}; writes will soon fail.`, remedy)];
  if (free < WARN_FREE_BYTES) return [warning(`Only ${formatBytes(free)} are free in ${at}.`, remedy)];
  return [fine(`${formatBytes(free)} are free in ${at}`)];
}

/**
 * Checks the clock, because tokens, signatures and schedules depend on the clock. A file modification time in the
 * future shows that the clock was set back.
 */
export function checkClock({ folder, now }: CheckTarget): Fact[] {
  const remedy = 'Set the clock and enable time synchronization (timedatectl set-ntp true).';
  const builtAt = statSync(join(packageRoot, 'package.json')).mtimeMs;
  const newest = Math.max(builtAt, ...timesIn(folder.root), ...timesIn(folder.logs));
  const aheadMs = newest - now;
  if (aheadMs <= CLOCK_TOLERANCE_MS) return [fine(new Date(now).toISOString())];
  return [
    failure(
      `The clock is at ${new Date(now).toISOString()}, but files here are ${formatDuration(aheadMs)} newer.`,
      remedy,
    ),
  ];
}

function timesIn(folder: string): number[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
}

function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path));
}
