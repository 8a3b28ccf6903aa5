// One install or build at a time in a checkout, however many starts there are at once.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const POLL_MS = 150;
/** Set for programs that a holder of the lock starts: they work under its lock. */
export const LOCK_HELD = 'SVC_BUILD_LOCK';

/** Runs `work` while this process alone holds the checkout's lock; `onWait` is told once by whom it is held. */
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
  for (let told = false; ; ) {
    if (tryTake(lock, token)) return broken;
    const owner = ownerOf(lock);
    if (owner && !isAlive(owner)) {
      const grave = `${lock}-${owner.token}`;
      if (tryBreak(lock, grave)) broken.push(grave);
      continue;
    }
    if (!told && owner) onWait(owner.pid);
    told ||= owner !== null;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The lock is a folder that appears with its owner inside, by one rename; a rename onto a held lock fails. */
function tryTake(lock, token) {
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
 * Moves a dead owner's lock aside, to a name made of that owner's token. Whoever judged the same owner dead a
 * moment later moves to the same name, and fails since it is taken: so nobody moves a successor's lock away.
 * The grave stays until the breaker's own work is done.
 */
function tryBreak(lock, grave) {
  try {
    renameSync(lock, grave);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) return false;
    throw error;
  }
}

function release(lock, token, broken) {
  if (ownerOf(lock)?.token === token) {
    const grave = `${lock}-${token}`;
    renameSync(lock, grave);
    rmSync(grave, { recursive: true, force: true });
  }
  for (const grave of broken) rmSync(grave, { recursive: true, force: true });
}

function ownerOf(lock) {
  try {
    return JSON.parse(readFileSync(join(lock, 'owner.json'), 'utf8'));
  } catch {
    return null;
  }
}

/** A process id may be given to another program; its start time is not. */
function isAlive({ pid, startedAt }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
  return startedAt === null || startTimeOf(pid) === startedAt;
}

/** In clock ticks since boot, on Linux; null where there is no /proc. */
function startTimeOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[19];
  } catch {
    return null;
  }
}
