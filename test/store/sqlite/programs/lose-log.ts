import { closeSync, readdirSync, readlinkSync } from 'node:fs';
import { openDatabase } from '../../../../src/store/sqlite/index.ts';
import { print } from './print.ts';

/** lose-log.ts <file>: writes once, takes the descriptor away by which the log is synced, writes again and prints what it is told. */
const [file] = process.argv.slice(2) as [string];
const db = await openDatabase({
  file,
  migrations: ['create table line (text text)'],
  syncBeside: true,
});
const insert = db.prepare<[string]>('insert into line (text) values (?)');
await db.write(() => insert.run('first'));
print('first\n');
const ours = readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).endsWith('-wal'));
// SQLite's own came before ours.
closeSync(Math.max(...ours.map(Number)));
db.write(() => insert.run('second')).then(
  () => print('acknowledged\n'),
  () => print('refused\n'),
);

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
