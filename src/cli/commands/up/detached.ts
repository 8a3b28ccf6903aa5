import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromErrorMessage } from '../../../kit/errors/error-message.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { entryFile } from '../../../kit/files/paths.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { type ControlClient, findSupervisor } from '../../../supervisor/control-client.ts';
import type { SupervisorReport, SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import { type DataFolder, ensureDataFolder } from '../../../supervisor/data-folder.ts';
import { exitText } from '../../../supervisor/service-process.ts';
import type { CommandContext } from '../../context.ts';
import { nodeText } from '../../node-text.ts';
import { announce, announceReady, type Started } from './announce.ts';
import type { StartSelection } from './services.ts';
import type { UpResult } from './up-result.ts';

const POLL_MS = 25;
/** File for the output of Node when the supervisor crashes. Log records of the supervisor are in `supervisor.log`. */
const CRASH_OUTPUT_FILE = 'supervisor.err';
const OTHER_START_DEADLINE_MS = seconds(60);
/**
 * Time limit for failed or stopped services to become ready. A stopping supervisor also has stopped services, and exits
 * within this limit.
 */
const OTHER_STOP_DEADLINE_MS = seconds(3);

/** Starts a detached supervisor, or finds a running supervisor. Resolves when all services are ready. */
export async function startDetached(selection: StartSelection, context: CommandContext): Promise<UpResult> {
  const running = await findRunning(selection, context);
  if (running) return running;
  try {
    return await startSupervisor(selection, context);
  } catch (error) {
    // If a concurrent `svc up` has started the platform, this command uses that platform.
    const lost = error instanceof PlatformError && error.details.alreadyRunning === true;
    const other = lost ? await awaitRunning(selection, context) : null;
    if (other) return other;
    throw error;
  }
}

/** Waits for a supervisor that has locked the data folder but has not yet written the run file. */
async function awaitRunning(selection: StartSelection, context: CommandContext): Promise<UpResult | null> {
  for (let waited = 0; waited < OTHER_START_DEADLINE_MS; waited += POLL_MS) {
    const running = await findRunning(selection, context);
    if (running) return running;
    await sleep(POLL_MS);
  }
  return null;
}

/**
 * Returns the platform that runs on the data folder, or null if no platform is running. Throws CONFLICT if the platform
 * has other ports or services than requested.
 */
async function findRunning(selection: StartSelection, context: CommandContext): Promise<UpResult | null> {
  const supervisor = findSupervisor(context.folder());
  if (!supervisor) return null;
  const status = await untilSettled(supervisor).catch((error: unknown) => {
    if (findSupervisor(context.folder())) throw error;
    return null;
  });
  if (!status) return null;
  requireSame(selection, status);
  context.ui.note(`svc is already running${nodeText(status.services)}.`);
  return { ...status, firstStart: false, alreadyRunning: true, brokenPlugins: [] };
}

/** Throws CONFLICT if the running platform has other services, or other ports, than requested. */
function requireSame(
  { ports, services }: StartSelection,
  { pid, services: running }: SupervisorStatus,
): void {
  const details = { details: { hint: 'Stop it first with svc down.', pid } };
  const names = running.map(({ name }) => name).join(',');
  if (services && services.join(',') !== names)
    throw new PlatformError('CONFLICT', `svc is already running, with the services ${names}.`, details);
  for (const [name, wanted] of Object.entries(ports)) {
    const actual = running.find((service) => service.name === name)?.port;
    if (wanted !== 0 && actual !== wanted)
      throw new PlatformError(
        'CONFLICT',
        `svc is already running, with ${name} on port ${actual} instead of ${wanted}.`,
        details,
      );
  }
}

/** Resolves with the status when all services are ready. Throws if some services are not ready in time. */
async function untilSettled(supervisor: ControlClient): Promise<SupervisorStatus> {
  for (let waited = 0; ; waited += POLL_MS) {
    const status = await supervisor.status();
    const missing = status.services.filter(({ state }) => state !== 'ready');
    if (missing.length === 0) return status;
    const isMoving = missing.some(({ state }) => state !== 'failed' && state !== 'stopped');
    if (waited > (isMoving ? OTHER_START_DEADLINE_MS : OTHER_STOP_DEADLINE_MS)) {
      const names = missing.map(({ name, state }) => `${name} (${state})`).join(', ');
      throw new PlatformError(
        isMoving ? 'UPSTREAM_TIMEOUT' : 'SERVICE_UNAVAILABLE',
        `svc is already running, but some services are not ready: ${names}.`,
        { details: { hint: 'See svc status. svc restart starts failed services.', pid: status.pid } },
      );
    }
    await sleep(POLL_MS);
  }
}

async function startSupervisor(selection: StartSelection, context: CommandContext): Promise<UpResult> {
  const { ui } = context;
  const child = spawnSupervisor(selection, context);
  // The exit listener is needed only until the supervisor has reported its start or failure.
  const started = await untilReported(child, context).finally(() => child.removeAllListeners('exit'));
  child.disconnect();
  child.unref();
  announceReady(started, ui);
  const { status, firstStart, brokenPlugins } = started;
  return { ...status, firstStart, alreadyRunning: false, brokenPlugins };
}

/**
 * Resolves when the supervisor reports a start. Rejects when the supervisor reports a failure or exits without a
 * report.
 */
function untilReported(child: ChildProcess, { ui, folder }: CommandContext): Promise<Started> {
  return new Promise((resolve, reject) => {
    child.on('message', (report: SupervisorReport) => {
      if (report.type === 'event') announce(report.event, ui);
      else if (report.type === 'ready') resolve(report);
      else reject(fromErrorMessage(report.error));
    });
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(
        new PlatformError(
          'SERVICE_UNAVAILABLE',
          `The supervisor exited while starting (${exitText({ code, signal })}).`,
          {
            details: {
              lastLines: crashOutput(folder()),
              hint: `See ${join(folder().logs, 'supervisor.log')}`,
            },
          },
        ),
      ),
    );
  });
}

/** Returns the output of Node from a crash of the supervisor. */
function crashOutput({ logs }: DataFolder): string[] {
  const text = readFileSync(join(logs, CRASH_OUTPUT_FILE), 'utf8');
  return text.split('\n').filter(Boolean).slice(0, 10);
}

/** Spawns the supervisor in a new session, so that the supervisor receives no signals from the terminal. */
function spawnSupervisor(
  { ports, services }: StartSelection,
  { folder, globals, cwd, env }: CommandContext,
): ChildProcess {
  const data = folder();
  ensureDataFolder(data);
  const log = openSync(join(data.logs, CRASH_OUTPUT_FILE), 'w', 0o600);
  const flags = [
    ...Object.entries(ports).flatMap(([name, port]) => ['--port', `${name}=${port}`]),
    ...(services ? ['--services', services.join(',')] : []),
    ...(globals.config ? ['--config', globals.config] : []),
    ...(globals.profile ? ['--profile', globals.profile] : []),
  ];
  try {
    return spawn(process.execPath, [entryFile('cli'), 'supervise', ...flags], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
}
