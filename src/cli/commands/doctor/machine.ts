import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatBytes } from '../../../kit/bytes.ts';
import { formatDuration, seconds } from '../../../kit/duration.ts';
import { packageRoot } from '../../../kit/paths.ts';
import { type Fact, failure, fine, type Patient, warning } from './check.ts';

/** From here on Node's permission model guards the network too. */
const GUARDS_NETWORK = 25;
const LOW_BYTES = 1024 ** 3;
const OUT_BYTES = 100 * 1024 ** 2;
const LOW_INODES = 1000;
const CLOCK_SLACK_MS = seconds(5);

export function checkNode(): Fact[] {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const needed = engines.node.replace(/^\D+/, '');
  const actual = process.versions.node;
  if (actual.localeCompare(needed, 'en', { numeric: true }) < 0)
    return [
      failure(
        `Node ${actual} is older than svc needs (${needed}).`,
        'Install a current Node: https://nodejs.org',
      ),
    ];
  if (Number(actual.split('.')[0]) >= GUARDS_NETWORK) return [fine(`Node ${actual}`)];
  return [
    warning(
      `Node ${actual}: its permission model does not guard the network, so without bubblewrap a plugin can open connections that its manifest does not grant.`,
      `Use Node ${GUARDS_NETWORK} or newer, or install bubblewrap.`,
    ),
  ];
}

export function checkDisk({ folder }: Patient): Fact[] {
  const at = nearestFolder(folder.root);
  const { bavail, bsize, ffree, files } = statfsSync(at);
  const free = bavail * bsize;
  const remedy = 'Free some space; svc config get retention shows what is kept for how long.';
  if (files > 0 && ffree < LOW_INODES)
    return [failure(`${at} has room for ${ffree} more files only.`, remedy)];
  if (free < OUT_BYTES)
    return [failure(`${formatBytes(free)} are free in ${at}: writes are about to fail.`, remedy)];
  if (free < LOW_BYTES) return [warning(`${formatBytes(free)} are free in ${at}.`, remedy)];
  return [fine(`${formatBytes(free)} are free in ${at}`)];
}

/** Tokens, signatures and schedules go by the clock. One that was set back shows in files of the future. */
export function checkClock({ folder, now }: Patient): Fact[] {
  const remedy = 'Set the clock, and let the system keep it (timedatectl set-ntp true).';
  const builtAt = statSync(join(packageRoot, 'package.json')).mtimeMs;
  const newest = Math.max(builtAt, ...timesIn(folder.root), ...timesIn(folder.logs));
  const aheadMs = newest - now;
  if (aheadMs <= CLOCK_SLACK_MS) return [fine(new Date(now).toISOString())];
  return [
    failure(
      `The clock says ${new Date(now).toISOString()}, but files here were written ${formatDuration(aheadMs)} later.`,
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
