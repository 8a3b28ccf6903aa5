import { writeSync } from 'node:fs';
import { codeOf } from '../../../../src/kit/errors/errors.ts';
import { acquireOwnerLock } from '../../../../src/store/sqlite/index.ts';

/** own.ts <file> <label> [<ms>]: holds the owner lock, for good or for so long, and says `held`; or says why not. */
const [file, label, ms = '600000'] = process.argv.slice(2) as [string, string, string?];
try {
  const lock = await acquireOwnerLock({ file, label, waitMs: 0 });
  writeSync(1, 'held\n');
  setTimeout(() => lock.release(), Number(ms));
} catch (error) {
  writeSync(1, `${codeOf(error)}\n`);
}
