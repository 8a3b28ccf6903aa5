import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { version } from '../../../kit/paths.ts';
import { findSupervisor } from '../../supervisor/control-client.ts';
import { identify, isRunning } from '../../supervisor/process-identity.ts';
import { readRunFile, removeRunFile } from '../../supervisor/run-file.ts';
import { isLeftStage } from '../backup/stage-folder.ts';
import { nextStartOf } from '../status-view.ts';
import { type Fact, failure, fine, type Patient, warning } from './check.ts';

/** What runs here, what should, and what a killed predecessor left. */
export function checkSupervision(patient: Patient): Fact[] {
  const facts = [...(patient.running ? ofRunning(patient) : ofStopped(patient)), ...leftFiles(patient)];
  return facts.length > 0
    ? facts
    : [fine(patient.running ? `all services are ready (pid ${patient.running.pid})` : 'not running')];
}

function ofRunning({ running }: Patient): Fact[] {
  const failed = (running?.services ?? []).filter(({ state }) => state === 'failed');
  const facts = failed.map((service) => {
    const { name, lastExit } = service;
    const why = [lastExit?.reason ?? 'it did not start', ...nextStartOf(service)].join('; ');
    return failure(`${name} is down: ${why}.`, `svc logs ${name} says why; then svc restart ${name}`);
  });
  if (running && running.version !== version)
    facts.push(
      warning(
        `Version ${running.version} runs; this is ${version}.`,
        'svc restart brings the services up to date; svc down and svc up -d the supervisor too.',
      ),
    );
  return facts;
}

function ofStopped({ folder }: Patient): Fact[] {
  const run = readRunFile(folder);
  if (!run) return [];
  const supervisor = findSupervisor(folder);
  if (supervisor)
    return [
      failure(
        `The supervisor (pid ${supervisor.pid}) runs but does not answer.`,
        `kill ${supervisor.pid}, then svc up -d`,
      ),
    ];
  const left = run.children.filter(isRunning);
  if (left.length > 0)
    return [
      warning(
        `The supervisor was killed; ${left.map(({ name, pid }) => `${name} (pid ${pid})`).join(', ')} are finishing.`,
        'svc up -d waits for them, or ends them.',
      ),
    ];
  return [
    warning(
      `${folder.runFile} is of a supervisor that was killed (pid ${run.supervisor.pid}).`,
      'svc doctor --fix removes it; so does the next svc up.',
      () => {
        rmSync(run.socket, { force: true });
        removeRunFile(folder);
        return `removed ${folder.runFile}`;
      },
    ),
  ];
}

/** What backups, restores and resets were at when they were killed: beside the data folder, or in `run/`. */
function leftFiles({ folder }: Patient): Fact[] {
  const [parent, own] = [dirname(folder.root), basename(folder.root)];
  const isLeftBeside = (name: string): boolean => {
    const [, pid] = name.startsWith(`${own}.`) ? (/\.(?:restoring|removing)-(\d+)$/.exec(name) ?? []) : [];
    return pid !== undefined && identify(Number(pid)).startedAt === null;
  };
  const left = [
    ...namesIn(folder.run)
      .filter(isLeftStage)
      .map((name) => join(folder.run, name)),
    ...namesIn(parent)
      .filter(isLeftBeside)
      .map((name) => join(parent, name)),
  ];
  return left.map((path) =>
    warning(`${path} is of a command that was killed.`, 'svc doctor --fix removes it.', () => {
      rmSync(path, { recursive: true, force: true });
      return `removed ${path}`;
    }),
  );
}

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
