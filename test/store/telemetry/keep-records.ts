import { readdirSync, readFileSync } from 'node:fs';
import { startTelemetryWriter } from '../../../src/store/telemetry/writer.ts';
import { print } from '../sqlite/programs/print.ts';

/** keep-records.ts <data folder>: starts the thread that keeps records, and prints how nice each of its threads is, in order, or why there is none. */
const [dataDir] = process.argv.slice(2) as [string];
const writer = startTelemetryWriter({
  dataDir,
  postgresUrl: null,
  retention: { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 },
  onDropped: (_, failure) => print(`${failure}\n`),
});
// The thread keeps nobody alive.
const awake = setInterval(() => {}, 1000);
writer.push('gateway', Buffer.from('{}\n'));
await writer.flush();
print(`${readdirSync('/proc/self/task').map(nicenessOf).sort().join(' ')}\n`);
await writer.close();
clearInterval(awake);

function nicenessOf(thread: string): number {
  const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
  // What comes behind the program's name, which may hold blanks: the state is field 3 of the page, the niceness 19.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19 - 3]);
}
