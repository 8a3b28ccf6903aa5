import { constants } from 'node:os';
import { loadConfig } from '../../../kit/config.ts';
import { systemRandom } from '../../../kit/random.ts';
import type { CommandContext } from '../../context.ts';
import { formatRecord } from '../../log-format.ts';
import { type RunningSupervisor, runSupervisor } from '../../supervisor/run-supervisor.ts';
import { onStopSignals } from '../../supervisor/stop-signals.ts';
import type { Ui } from '../../ui.ts';
import { announce, announceReady } from './announce.ts';
import type { Ports } from './ports.ts';

/**
 * Runs the platform in this process until a signal or `svc down` ends it. Logs go to stdout: readable on a
 * terminal, the raw records (NDJSON) into a pipe or a file, which is what log collectors take. Resolves with the
 * exit code: 128 + n after a signal.
 */
export async function runForeground(ports: Ports, context: CommandContext): Promise<number> {
  const { cwd, env, globals, ui } = context;
  const readable = ui.interactive && !globals.json;
  let supervisor: RunningSupervisor | undefined;
  let signalled: NodeJS.Signals | undefined;
  // Before anything starts: a Ctrl-C in between would end this process alone.
  const off = onStopSignals({
    first(signal) {
      signalled = signal;
      if (!supervisor) process.exit(codeOfSignal(signal));
      ui.note(`\n${signal}: draining; once more ends everything at once`);
      supervisor.stop();
    },
    again: () => supervisor?.kill(),
  });
  onOutputRefused(ui, () => (supervisor ? supervisor.stop() : process.exit(0)));
  supervisor = await runSupervisor({
    clock: context.clock,
    random: systemRandom(),
    loadConfig: () => loadConfig({ cwd, env, configFile: globals.config, profile: globals.profile, ports }),
    onEvent: (event) => announce(event, ui),
    onLines(source, lines) {
      if (!readable) return ui.raw(lines);
      // Events are announced already; the supervisor's log lines would say them twice.
      if (source === 'supervisor') return;
      const records = lines.toString('utf8').trimEnd().split('\n');
      ui.raw(records.map((record) => `${formatRecord(record, ui.out)}\n`).join(''));
    },
  });
  try {
    await supervisor.ready;
    const [status, brokenPlugins] = await Promise.all([supervisor.status(), supervisor.brokenPlugins()]);
    announceReady({ status, firstStart: supervisor.firstStart, brokenPlugins }, ui);
    await supervisor.ended;
  } catch (error) {
    if (!signalled) throw error;
    await supervisor.ended;
  } finally {
    off();
  }
  return signalled ? codeOfSignal(signalled) : 0;
}

const codeOfSignal = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/**
 * `svc up | head`: nobody reads the logs any more, and a platform that nobody sees is not what was asked for. It drains
 * first. `svc up >> svc.log` on a full disk loses lines, and nothing else.
 */
function onOutputRefused(ui: Ui, stop: () => void): void {
  let isTold = false;
  // Other commands have nothing to finish: main.ts ends them on the spot.
  process.stdout.removeAllListeners('error');
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return stop();
    if (!isTold) ui.warn(`Log lines cannot be written here (${error.message}); \`svc logs\` has them.`);
    isTold = true;
  });
}
