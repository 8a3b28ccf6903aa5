import { startTelemetryWriter } from '../../../src/store/telemetry/writer.ts';
import { print } from '../sqlite/programs/print.ts';

/** write-records.ts <PostgreSQL URL> <name>: stores numbered records as a node until it is killed, and prints each number that is stored. */
const [postgresUrl, name] = process.argv.slice(2) as [string, string];
const writer = startTelemetryWriter({
  dataDir: '/nowhere',
  postgresUrl,
  retention: { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 },
  onDropped: (count, failure) => print(`dropped ${count} ${failure}\n`),
});
for (let n = 1; ; n++) {
  const record = { level: 'info', time: Date.now(), tenantId: name, message: `${name} ${n}` };
  writer.push('gateway', Buffer.from(`${JSON.stringify(record)}\n`));
  await writer.flush();
  print(`${n}\n`);
}
