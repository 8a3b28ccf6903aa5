/**
 * `npm run bench [-- name … [--flag …]]`: runs benchmarks in sequence and prints their tables and the machine.
 * `startup --with-others` also measures other programs, fetched from the npm registry. `--json` prints one JSON document
 * per benchmark instead of tables.
 */
import { cpus, totalmem } from 'node:os';
import type { BenchResult } from './support/result.ts';

const BENCHES: Record<string, () => Promise<{ run(flags: ReadonlySet<string>): Promise<BenchResult> }>> = {
  startup: () => import('./startup.ts'),
  store: () => import('./store.ts'),
  vectors: () => import('./vectors.ts'),
  growth: () => import('./growth.ts'),
  handlers: () => import('./handlers.ts'),
  backends: () => import('./backends.ts'),
  agents: () => import('./agents.ts'),
  mcp: () => import('./mcp.ts'),
  webhooks: () => import('./webhooks.ts'),
  queues: () => import('./queues.ts'),
  messages: () => import('./messages.ts'),
  telemetry: () => import('./telemetry.ts'),
  'webhook-crashes': () => import('./webhook-crashes.ts'),
  workflows: () => import('./workflows.ts'),
  proxy: () => import('./proxy.ts'),
  cluster: () => import('./cluster.ts'),
  takeover: () => import('./takeover.ts'),
  studio: () => import('./studio/studio.ts'),
};

const flags = new Set(process.argv.slice(2).filter((word) => word.startsWith('--')));
const chosen = process.argv.slice(2).filter((word) => !flags.has(word));
const unknown = chosen.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  console.error(`Unknown benchmark ${unknown.join(', ')}. Available: ${Object.keys(BENCHES).join(', ')}.`);
  process.exit(2);
}

const isJson = flags.has('--json');
if (!isJson) console.log(`${machine()}\n`);
for (const [name, load] of Object.entries(BENCHES)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const { run } = await load();
  const result = await run(flags);
  if (isJson) console.log(JSON.stringify({ machine: machine(), ...result }, null, 2));
  else print(result);
}
// Pools and timers of measured code may keep the process alive.
process.exit(0);

function machine(): string {
  const [first, ...others] = cpus();
  const memory = Math.round(totalmem() / 1024 ** 3);
  return `${others.length + 1} x ${first?.model.trim()}, ${memory} GB, ${process.platform} ${process.arch}, Node ${process.versions.node}`;
}

/** Prints a Markdown table, to be copied into the README. */
function print({ name, rows, note }: BenchResult): void {
  const headings = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => headings.map((heading) => text(row[heading])));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, 3, ...cells.map((row) => row[column]!.length)),
  );
  const line = (row: string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  console.log(`### ${name}\n`);
  console.log(
    [line(headings), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line)].join('\n'),
  );
  console.log(note ? `\n${note}\n` : '');
}

function text(value: string | number | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'number' ? value.toLocaleString('en-US') : value;
}
