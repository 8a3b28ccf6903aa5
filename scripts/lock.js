// Allows one install or build at a time per checkout.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const POLL_MS = 150;
/** Set for child processes of the lock holder, which work under its lock. */
export const LOCK_HELD = 'SVC_BUILD_LOCK';

/** Runs `work` while holding the checkout's lock; `onWait` is called once with the pid of the holder. */
export async function withLock(root, onWait, work) {
  const lock = join(root, 'dist.lock');
  const token = randomUUID();
  const broken = await acquire(lock, token, onWait);
  const onExit = () => release(lock, token, broken);
  process.once('exit', onExit);
  try {
    return await work({ ...process.env, [LOCK_HELD]: token });
  } finally {
    process.off('exit', onExit);
    onExit();
  }
}

async function acquire(lock, token, onWait) {
  const broken = [];
  for (let hasReported = false; ; ) {
    if (tryAcquire(lock, token)) return broken;
    const owner = ownerOf(lock);
    if (owner && !isAlive(owner)) {
      const brokenLock = `${lock}-${owner.token}`;
      if (tryBreak(lock, brokenLock)) broken.push(brokenLock);
      continue;
    }
    if (!hasReported && owner) onWait(owner.pid);
    hasReported ||= owner !== null;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The lock is a folder created with its owner file by one atomic rename; renaming onto a held lock fails. */
function tryAcquire(lock, token) {
  const own = `${lock}-${token}`;
  mkdirSync(own);
  writeFileSync(
    join(own, 'owner.json'),
    JSON.stringify({ pid: process.pid, startedAt: startTimeOf(process.pid), token }),
  );
  try {
    renameSync(own, lock);
    return true;
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Renames a dead owner's lock to a name with that owner's token. A concurrent breaker uses the same name and fails, so a
 * successor's lock is never removed. The renamed folder is kept until the breaker's work is done.
 */
function tryBreak(lock, brokenLock) {
  try {
    renameSync(lock, brokenLock);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) return false;
    throw error;
  }
}

function release(lock, token, broken) {
  if (ownerOf(lock)?.token === token) {
    const released = `${lock}-${token}`;
    renameSync(lock, released);
    rmSync(released, { recursive: true, force: true });
  }
  for (const brokenLock of broken) rmSync(brokenLock, { recursive: true, force: true });
}

function ownerOf(lock) {
  try {
    return JSON.parse(readFileSync(join(lock, 'owner.json'), 'utf8'));
  } catch {
    return null;
  }
}

/** Compares the start time too, because pids are reused. */
function isAlive({ pid, startedAt }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
  return startedAt === null || startTimeOf(pid) === startedAt;
}

/** In clock ticks since boot on Linux; null without /proc. */
function startTimeOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[19];
  } catch {
    return null;
  }
}
