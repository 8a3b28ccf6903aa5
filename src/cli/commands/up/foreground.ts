import { constants } from 'node:os';
import { loadConfig } from '../../../kit/config/config.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import { type RunningSupervisor, runSupervisor } from '../../../supervisor/run-supervisor.ts';
import { onStopSignals } from '../../../supervisor/stop-signals.ts';
import type { CommandContext } from '../../context.ts';
import { loadRecordFormat } from '../../log-format.ts';
import type { Ui } from '../../ui.ts';
import { announce, announceReady } from './announce.ts';
import type { StartSelection } from './services.ts';

/**
 * Runs the platform in this process until a signal or `svc down`. Prints logs to stdout, as NDJSON with `--json` or
 * without a terminal. Resolves with the exit code, which is 128 + n after signal n.
 */
export async function runForeground(
  { ports, services }: StartSelection,
  context: CommandContext,
): Promise<number> {
  const { cwd, env, globals, ui } = context;
  const format = ui.interactive && !globals.json ? await loadRecordFormat(ui.out) : null;
  let supervisor: RunningSupervisor | undefined;
  let signalled: NodeJS.Signals | undefined;
  // The signal handlers are installed before the services start. Otherwise, Ctrl-C during the start would end only this
  // process and not the services.
  const off = onStopSignals({
    first(signal) {
      signalled = signal;
      if (!supervisor) process.exit(codeOfSignal(signal));
      ui.note(`\n${signal}: draining; send it again to kill everything`);
      supervisor.stop();
    },
    again: () => supervisor?.kill(),
  });
  onOutputError(ui, () => (supervisor ? supervisor.stop() : process.exit(0)));
  supervisor = await runSupervisor({
    clock: context.clock,
    random: systemRandom(),
    services,
    loadConfig: () => loadConfig({ cwd, env, configFile: globals.config, profile: globals.profile, ports }),
    onEvent: (event) => announce(event, ui),
    onLines(source, lines) {
      if (!format) return ui.raw(lines);
      // The log of the supervisor contains the events that `onEvent` has already printed.
      if (source === 'supervisor') return;
      const records = lines.toString('utf8').trimEnd().split('\n');
      ui.raw(records.map((record) => `${format(record)}\n`).join(''));
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
 * Stops the platform on EPIPE, because no process reads the output (`svc up | head`). After other errors, such as a
 * full disk, only log lines are lost.
 */
function onOutputError(ui: Ui, stop: () => void): void {
  let hasWarned = false;
  // Replaces the handler in main.ts, which exits immediately.
  process.stdout.removeAllListeners('error');
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return stop();
    if (!hasWarned) ui.warn(`Cannot write log lines (${error.message}). Use \`svc logs\` instead.`);
    hasWarned = true;
  });
}
