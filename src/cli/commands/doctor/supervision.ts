import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { SERVICE_NAMES } from '../../../contracts/index.ts';
import { version } from '../../../kit/files/paths.ts';
import { findSupervisor } from '../../../supervisor/control-client.ts';
import type { SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import { identify, isRunning } from '../../../supervisor/process-identity.ts';
import { readRunFile, removeRunFile } from '../../../supervisor/run-file.ts';
import { isOrphanedStage } from '../backup/stage-folder.ts';
import { nextStartOf } from '../status/service-table.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

/** Checks the running services, and reports files that killed processes left. */
export function checkSupervision(target: CheckTarget): Fact[] {
  const facts = [...(target.running ? ofRunning(target) : ofStopped(target)), ...orphanedFiles(target)];
  return facts.length > 0 ? facts : [fine(target.running ? readyText(target.running) : 'not running')];
}

function readyText({ services, pid }: SupervisorStatus): string {
  const isWhole = services.length === SERVICE_NAMES.length;
  const names = services.map(({ name }) => name).join(', ');
  return isWhole
    ? `all services are ready (pid ${pid})`
    : `this node runs only ${names}, which are ready (pid ${pid})`;
}

function ofRunning({ running }: CheckTarget): Fact[] {
  const processes = (running?.services ?? []).flatMap(({ furtherProcesses = [], ...first }) => [
    { ...first, label: first.name as string },
    ...furtherProcesses.map((further) => ({
      ...further,
      name: first.name,
      label: `Process ${further.number} of ${first.name}`,
    })),
  ]);
  const failed = processes.filter(({ state }) => state === 'failed');
  const facts = failed.map((each) => {
    const { name, label, lastExit } = each;
    const why = [lastExit?.reason ?? 'it did not start', ...nextStartOf(each)].join('; ');
    return failure(`${label} is down: ${why}.`, `See svc logs ${name}, then run svc restart ${name}`);
  });
  if (running && running.version !== version)
    facts.push(
      warning(
        `Version ${running.version} is running, but this is ${version}.`,
        'svc restart updates the services; svc down and svc up -d also update the supervisor.',
      ),
    );
  return facts;
}

function ofStopped({ folder }: CheckTarget): Fact[] {
  const run = readRunFile(folder);
  if (!run) return [];
  const supervisor = findSupervisor(folder);
  if (supervisor)
    return [
      failure(
        `The supervisor (pid ${supervisor.pid}) is running but does not answer.`,
        `kill ${supervisor.pid}, then svc up -d`,
      ),
    ];
  const left = run.children.filter(isRunning);
  if (left.length > 0)
    return [
      warning(
        `The supervisor was killed; ${left.map(({ name, pid }) => `${name} (pid ${pid})`).join(', ')} are finishing.`,
        'svc up -d waits for them, or kills them.',
      ),
    ];
  return [
    warning(
      `${folder.runFile} was left by a killed supervisor (pid ${run.supervisor.pid}).`,
      'svc doctor --fix or the next svc up removes it.',
      () => {
        rmSync(run.socket, { force: true });
        removeRunFile(folder);
        return `removed ${folder.runFile}`;
      },
    ),
  ];
}

/**
 * Reports temporary folders left by killed backups, restores and resets. These folders are next to the data folder or
 * in `run/`.
 */
function orphanedFiles({ folder }: CheckTarget): Fact[] {
  const [parent, own] = [dirname(folder.root), basename(folder.root)];
  const isOrphanedSibling = (name: string): boolean => {
    const [, pid] = name.startsWith(`${own}.`) ? (/\.(?:restoring|removing)-(\d+)$/.exec(name) ?? []) : [];
    return pid !== undefined && identify(Number(pid)).startedAt === null;
  };
  const orphaned = [
    ...namesIn(folder.run)
      .filter(isOrphanedStage)
      .map((name) => join(folder.run, name)),
    ...namesIn(parent)
      .filter(isOrphanedSibling)
      .map((name) => join(parent, name)),
  ];
  return orphaned.map((path) =>
    warning(`${path} was left by a killed command.`, 'svc doctor --fix removes it.', () => {
      rmSync(path, { recursive: true, force: true });
      return `removed ${path}`;
    }),
  );
}

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
